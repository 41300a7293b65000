//! What known servers write into their log of a request, each in its own form.

use std::net::SocketAddr;

use chrono::{DateTime, Utc};

use crate::agnhost::modes::RememberingMode;
use crate::agnhost::{consumer, guestbook, klog_line, netexec};
use crate::byte_text;
use crate::common_time::common_time;
use crate::requests::{WebAnswer, WebRequest};
use crate::servers::{ContainerServer, Site};

/// The line of a request; nothing where the server writes none.
pub fn line(
    server: &ContainerServer,
    port: i64,
    asked: &WebRequest<'_>,
    answered: &WebAnswer,
    at: DateTime<Utc>,
) -> Option<String> {
    Some(match server.site(port)? {
        Site::Nginx(nginx) => nginx.log_line(port, asked, answered, at)?,
        Site::Pages(pages) => match &pages.nginx {
            Some(nginx) => nginx.log_line(port, asked, answered, at)?,
            None => common(asked, answered, at),
        },
        Site::Ruled(rules) if rules.is_logged() => common(asked, answered, at),
        Site::NetExec(Some(path)) => klog_line::of(netexec::logged(&netexec::overridden(asked, path)), at),
        Site::NetExec(None) => klog_line::of(netexec::logged(asked), at),
        Site::HostName => klog_line::of(format!("HTTP request from {}", asked.from), at),
        Site::Guestbook(_) => klog_line::of(guestbook::logged(asked)?, at),
        Site::Speaker(speaker) => speaker.log_line(asked, answered, at, &common(asked, answered, at))?,
        Site::Mode(RememberingMode::Consumer) => consumer::log_line(asked, answered, at)?,
        Site::Audit => events(asked.body)?.join("\n"),
        _ => return None,
    })
}

/// The events of a list of audit, each as a line; nothing for what is none.
pub(crate) fn events(body: &[u8]) -> Option<Vec<String>> {
    let list: serde_json::Value = serde_json::from_slice(body).ok()?;
    let events = list["items"].as_array().filter(|_| list["kind"] == "EventList")?;
    Some(events.iter().map(ToString::to_string).collect())
}

/// NCSA's common form, as nginx and Apache begin their lines.
fn common(asked: &WebRequest<'_>, answered: &WebAnswer, at: DateTime<Utc>) -> String {
    let from =
        asked.from.parse::<SocketAddr>().map_or_else(|_| asked.from.to_owned(), |from| from.ip().to_string());
    format!(
        "{from} - - [{}] \"{} {} HTTP/1.1\" {} {}",
        common_time(at),
        asked.method,
        asked.target,
        answered.code,
        byte_text::byte_count(&answered.body),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_servers::server;
    use crate::invocation::Invocation;

    #[test]
    fn each_server_has_its_own_form() {
        let asked = WebRequest {
            method: "GET",
            target: "/a?b=c",
            headers: vec![("user-agent", "curl/8"), ("host", "web:5678")],
            from: "10.0.0.9:4000",
            ..WebRequest::default()
        };
        let answered = WebAnswer { code: 404, body: "gone".into(), ..WebAnswer::default() };
        let common = "10.0.0.9 - - [01/Jan/1970:00:00:00 +0000] \"GET /a?b=c HTTP/1.1\" 404 4";
        let texts = ["-text=hi".to_owned()];
        let netexec = ["netexec".to_owned()];
        let hello = "1970/01/01 00:00:00 Serving request: /a";
        let klog = |text: &str| Some(format!("I0101 00:00:00.000000       1 log.go:245] {text}"));
        let named = ["serve-hostname".to_owned()];
        let book = ["guestbook".to_owned()];
        for (image, args, port, wanted) in [
            ("nginx", &[][..], 80, Some(format!("{common} \"-\" \"curl/8\" \"-\""))),
            ("httpd", &[], 80, Some(common.to_owned())),
            (
                "hashicorp/http-echo",
                &texts,
                5678,
                Some(
                    "1970/01/01 00:00:00 web:5678 10.0.0.9:4000 \"GET /a?b=c HTTP/1.1\" 404 4 \"curl/8\" 24.1µs"
                        .into(),
                ),
            ),
            ("gcr.io/google-samples/hello-app", &[], 8080, Some(hello.into())),
            ("e2e/agnhost", &netexec, 8080, klog("GET /")),
            ("e2e/agnhost", &named, 9376, klog("HTTP request from 10.0.0.9:4000")),
            ("e2e/agnhost", &book, 80, None),
            ("traefik/whoami", &[], 80, None),
        ] {
            let server = server(&Invocation::new(image, &[], args), &[], &[]).unwrap();
            assert_eq!(line(&server, port, &asked, &answered, DateTime::UNIX_EPOCH), wanted, "{image}");
        }
    }
}
