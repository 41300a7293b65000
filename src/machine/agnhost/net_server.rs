//! agnhost's `net --serve`: it runs a client when it is asked to.

use std::time::Duration;

use super::asking::{AskFirst, Backing};
use super::close_wait::{SERVER, WrongOptions, server};
use crate::requests::{WebAnswer, WebRequest};
use crate::server_state::ServerState;

/// What it says when it has run what it was asked to (`handleRunRequest`).
pub(super) fn answer(
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    backing: Backing<'_>,
) -> Result<WebAnswer, Box<AskFirst>> {
    let path = asked.target.split('?').next().unwrap_or_default();
    if !path.starts_with("/run/") {
        return Ok(WebAnswer::not_found());
    }
    let parts: Vec<&str> = path.split('/').collect();
    let &[_, _, runner] = &parts[..] else {
        return Ok(WebAnswer::error(400, format!("invalid request to run: [{}]", parts.join(" "))));
    };
    let options = String::from_utf8_lossy(asked.body);
    if runner == SERVER {
        return Ok(listening(&options, state));
    }
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

/// A server listens from now on; what it says is answered when a client has come and it is done.
fn listening(options: &str, state: &mut ServerState) -> WebAnswer {
    let failed = |why: String| WebAnswer::error(500, format!("Error from runner: {why}\noutput:\n\n"));
    let (port, tester) = match server(options, true) {
        Ok(server) => server,
        Err(WrongOptions(why)) => return failed(why),
    };
    let output = tester.closes.as_ref().map(|how| how.output.clone()).unwrap_or_default();
    if !state.run_at(port, tester) {
        return failed(format!("listen tcp :{port}: bind: address already in use"));
    }
    WebAnswer { after_client_at: Some(port), ..WebAnswer::text(200, format!("ok\noutput:\n\n{output}")) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::agnhost::modes::{self, RememberingMode};
    use crate::questions::{Answered, NetworkAsk, NetworkReply};
    use crate::server_state::MAX_RUNNERS;
    use crate::surroundings::Surroundings;

    #[test]
    fn the_client_is_run_for_whoever_asks() {
        let around = Surroundings { image: "agnhost".into(), ..Surroundings::default() };
        let ask = |target: &str, body: &str, replies: &[NetworkReply]| {
            let told = |reply: &NetworkReply| Answered { reply: reply.clone(), took: Duration::from_secs(2) };
            let answers = Arc::new(replies.iter().map(told).collect());
            let asked = WebRequest { target, body: body.as_bytes(), ..WebRequest::default() };
            let backing = Backing { around: Some(&around), answers: &answers, client: None };
            let answered = answer(&asked, &mut ServerState::default(), backing);
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
        assert!(
            said.starts_with(
                "ok\noutput:\n\n# closewait.go:169: Run &{10.0.0.1:9999 0 3 false}\n# closewait.go:184: Conn"
            ),
            "{said}"
        );
        assert!(said.ends_with("waiting 3 seconds\n# closewait.go:213: Done\n"), "{said}");
        let refused = "Error from runner: dial tcp 10.0.0.1:9999: connect: connection refused\noutput:\n\n\
                       # closewait.go:169: Run &{10.0.0.1:9999 0 3 false}\n\n";
        assert_eq!(ask(run, options, &[NetworkReply::Refused]).unwrap(), (500, 2, refused.to_owned()));
        let failed = |target: &str, body: &str| ask(target, body, &[]).unwrap();
        let unknown = "Error from runner: Invalid runner: '<nil>', see --help\noutput:\n\n\n";
        assert_eq!(failed("/run/other", "{}"), (500, 0, unknown.to_owned()));
        assert!(failed(run, "{").2.starts_with("Error from runner: Invalid options JSON: "));
        assert_eq!(failed("/run/a/b", "{}"), (400, 0, "invalid request to run: [ run a b]\n".to_owned()));
        let missing = "Error from runner: address : missing port in address\noutput:\n\n\n";
        assert_eq!(failed("/run/nat-closewait-server", "{}"), (500, 0, missing.to_owned()));
        assert_eq!(failed("/", "").0, 404);
        let mut state = ServerState::default();
        let options = r#"{"LocalAddr": "0.0.0.0:9999", "PostFinTimeoutSeconds": 3}"#;
        let first = listening(options, &mut state);
        assert_eq!((first.code, first.after_client_at), (200, Some(9999)));
        assert!(first.body.ends_with("waiting 3 seconds\n# closewait.go:128: Done\n"), "{}", first.body);
        let second = listening(options, &mut state);
        assert_eq!((second.code, second.after_client_at), (500, None));
        assert!(second.body.contains("listen tcp :9999: bind: address already in use"), "{}", second.body);
        let at = |port: i64| format!(r#"{{"LocalAddr": "0.0.0.0:{port}"}}"#);
        let others = (1..MAX_RUNNERS as i64).map(|number| listening(&at(10_000 + number), &mut state).code);
        assert!(others.collect::<Vec<_>>().iter().all(|code| *code == 200));
        assert_eq!(listening(&at(20_000), &mut state).code, 500, "there is no room");
        let words = ["--serve", ":8889"].map(str::to_owned);
        assert_eq!(modes::serving("net", &words), Some((8889, RememberingMode::Runners)));
    }
}
