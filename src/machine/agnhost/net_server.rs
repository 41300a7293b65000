//! agnhost's `net --serve`: it runs a client when it is asked to.

use std::time::Duration;

use super::asking::{AskFirst, Backing};
use super::close_wait::SERVER;
use crate::requests::{WebAnswer, WebRequest};

/// What it says when it has run what it was asked to (`handleRunRequest`). A server at a port that a request
/// names is not played.
pub(super) fn answer(asked: &WebRequest<'_>, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let path = asked.target.split('?').next().unwrap_or_default();
    if !path.starts_with("/run/") {
        return Ok(WebAnswer::not_found());
    }
    let parts: Vec<&str> = path.split('/').collect();
    let &[_, _, runner] = &parts[..] else {
        return Ok(WebAnswer::error(400, format!("invalid request to run: [{}]", parts.join(" "))));
    };
    if runner == SERVER {
        return Ok(WebAnswer::error(501, format!("{SERVER} is played here as --runner alone")));
    }
    let options = String::from_utf8_lossy(asked.body);
    let words = ["/agnhost", "net", "--runner", runner, "--options", &options];
    let executed = backing.execute(&words)?;
    let (took, code) = executed.end.unwrap_or((Duration::MAX, 0));
    let why = executed.errors.split_once("Error: ").map(|(_, why)| why.trim_end());
    let answer = match why.filter(|_| code != 0) {
        None => WebAnswer::text(200, format!("ok\n{}", executed.out)),
        Some(why) => WebAnswer::error(500, format!("Error from runner: {why}\n{}", executed.out)),
    };
    Ok(WebAnswer { delay: took, ..answer })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::agnhost::modes::{self, RememberingMode};
    use crate::questions::{Answered, NetworkAsk, NetworkReply};
    use crate::surroundings::Surroundings;

    #[test]
    fn the_client_is_run_for_whoever_asks() {
        let around = Surroundings { image: "agnhost".into(), ..Surroundings::default() };
        let ask = |target: &str, body: &str, replies: &[NetworkReply]| {
            let told = |reply: &NetworkReply| Answered { reply: reply.clone(), took: Duration::from_secs(2) };
            let answers = Arc::new(replies.iter().map(told).collect());
            let asked = WebRequest { target, body: body.as_bytes(), ..WebRequest::default() };
            let answered = answer(&asked, Backing { around: Some(&around), answers: &answers, client: None });
            answered.map(|answered| (answered.code, answered.delay.as_secs(), answered.body))
        };
        let run = "/run/nat-closewait-client";
        let options = r#"{"RemoteAddr": "10.0.0.1:9999", "PostFinTimeoutSeconds": 3}"#;
        let asks = ask(run, options, &[]).unwrap_err().1.what;
        assert!(
            matches!(asks, NetworkAsk::Tcp { to, .. } if to == "10.0.0.1:9999".parse().unwrap()),
            "{asks:?}"
        );
        let (code, delay, said) = ask(run, options, &[NetworkReply::Empty]).unwrap();
        assert_eq!((code, delay), (200, 5), "{said}");
        assert!(said.starts_with("ok\noutput:\n\n# closewait.go:184: Connected to server\n"), "{said}");
        assert!(said.ends_with("waiting 3 seconds\n# closewait.go:213: Done\n"), "{said}");
        let refused = "Error from runner: dial tcp 10.0.0.1:9999: connect: connection refused\noutput:\n\n\n";
        assert_eq!(ask(run, options, &[NetworkReply::Refused]).unwrap(), (500, 2, refused.to_owned()));
        let failed = |target: &str, body: &str| ask(target, body, &[]).unwrap();
        let unknown = "Error from runner: Invalid runner: '<nil>', see --help\noutput:\n\n\n";
        assert_eq!(failed("/run/other", "{}"), (500, 0, unknown.to_owned()));
        assert!(failed(run, "{").2.starts_with("Error from runner: Invalid options JSON: "));
        assert_eq!(failed("/run/a/b", "{}"), (400, 0, "invalid request to run: [ run a b]\n".to_owned()));
        assert_eq!((failed("/", "").0, failed("/run/nat-closewait-server", "{}").0), (404, 501));
        let words = ["--serve", ":8889"].map(str::to_owned);
        assert_eq!(modes::serving("net", &words), Some((8889, RememberingMode::Runners)));
    }
}
