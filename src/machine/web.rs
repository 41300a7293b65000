//! What known web servers answer, whole: codes, headers and pages.
//!
//! Their pages are ours, but for the words by which everybody knows them.

use std::time::Duration;

use serde_json::json;

use crate::access_log;
pub use crate::agnhost::asking::{Backing, TlsClient};
use crate::agnhost::{netexec, no_snat, webhook};
use crate::questions;
pub use crate::requests::{Served, WebAnswer, WebRequest};
use crate::served_files;
use crate::server_state::ServerState;
use crate::servers::{ContainerServer, Page, Site};
use crate::surroundings::Surroundings;
use crate::wardle;
use crate::web_servers::WebPages;

impl ContainerServer {
    /// What comes of a request at `port` of a server that remembers `state`, and has `backing`.
    pub fn serve(
        &self,
        port: i64,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        backing: Backing<'_>,
    ) -> Served {
        let instead;
        let asked = match self.site(port) {
            Some(Site::NetExec(Some(path))) => {
                instead = netexec::overridden(asked, path);
                &instead
            }
            _ => asked,
        };
        let answered = match self.site(port) {
            Some(Site::NetExec(_)) => netexec::answer(asked, state, backing, port),
            Some(Site::Mode(mode)) => Some(mode.answer(asked, state, backing)),
            Some(Site::Guestbook(guestbook)) => Some(guestbook.answer(asked, state, backing)),
            Some(Site::NoSnat) => Some(no_snat::answer(asked, backing)),
            Some(Site::NoSnatProxy) => Some(no_snat::pass_on(asked, backing)),
            Some(Site::Webhook(sidecar)) => Some(Ok(webhook::answer(asked, sidecar))),
            Some(Site::Conversion) => Some(Ok(webhook::convert(asked))),
            Some(Site::Speaker(speaker)) => Some(Ok(speaker.answer(asked, state, backing.around))),
            Some(Site::Audit) => {
                let code = if access_log::events(asked.body).is_some() { 200 } else { 500 };
                Some(Ok(WebAnswer::text(code, "")))
            }
            Some(Site::Wardle) => Some(wardle::serve(asked, &mut state.wardle, backing)),
            Some(Site::Health) => Some(Ok(told_of_health(asked, state))),
            Some(Site::Files(folders)) => Some(Ok(served_files::of_agnhost(folders, asked, backing.around))),
            Some(Site::Nginx(nginx)) => Some(nginx.answer(port, asked, backing)),
            Some(Site::Ruled(rules)) => Some(rules.answer(port, asked, backing)),
            Some(Site::Pages(pages)) => match &pages.nginx {
                Some(nginx) => Some(nginx.answer(port, asked, backing)),
                None => of_volume(pages, asked, backing.around).map(Ok),
            },
            _ => None,
        };
        match answered.unwrap_or_else(|| Ok(self.answer(port, asked))) {
            Ok(answer) => Served::Answer(answer),
            Err(first) => Served::Asks(first.0, Box::new(first.1)),
        }
    }

    /// Whether a service is well at `port` of a server that has run for so long; nothing for a service that
    /// it does not know.
    pub fn is_serving(
        &self,
        port: i64,
        service: &str,
        state: &ServerState,
        uptime: Duration,
    ) -> Option<bool> {
        let health = self.health(port).filter(|health| health.service == service)?;
        let is_over = health.fails_after.is_some_and(|after| uptime >= after);
        Some(state.is_serving.unwrap_or(true) && !is_over)
    }

    /// What is answered at `port`; a server of which nobody knows what it would say answers 501 and says so.
    pub fn answer(&self, port: i64, asked: &WebRequest<'_>) -> WebAnswer {
        let known = self.site(port).and_then(|site| {
            let pages = self.get(port, asked.target)?;
            let page = pages.into_iter().rfind(|(from, _)| *from <= asked.uptime)?.1;
            Some((site, page))
        });
        match known {
            Some((_, Page::Moved(code, location))) => {
                let phrase = questions::phrase(code);
                let link = if asked.method == "GET" {
                    format!("<a href=\"{location}\">{phrase}</a>.\n\n")
                } else {
                    String::new()
                };
                let mut answer = WebAnswer::typed(code, "text/html; charset=utf-8", link);
                answer.headers.push(("location", location));
                answer
            }
            Some((site, Page::Status(code))) => site.page(code, asked),
            None => WebAnswer::text(501, format!("What is answered to {} is not simulated.\n", asked.target)),
        }
    }
}

impl Site {
    fn page(&self, code: u16, asked: &WebRequest<'_>) -> WebAnswer {
        match self {
            Site::Pages(pages) => welcome(pages, code, asked),
            Site::HostName => WebAnswer::text(code, asked.host_name),
            Site::Text(text) => WebAnswer::sniffed(code, text),
            Site::Porter(text) => {
                let answered = json!({"Method": asked.method, "Body": text});
                WebAnswer::typed(code, "application/json", answered.to_string())
            }
            Site::NetExec(_) => netexec::page(asked, 0),
            Site::Liveness if code == 500 => {
                WebAnswer::text(code, format!("error: {}", asked.uptime.as_secs_f64()))
            }
            Site::Liveness if asked.target.starts_with("/healthz") => WebAnswer::text(code, "ok"),
            Site::Liveness if code == 200 => WebAnswer::text(code, golang::duration::format(asked.uptime)),
            _ if code == 404 => WebAnswer::not_found(),
            _ => WebAnswer::text(code, ""),
        }
    }
}

/// A page that is a file; nothing where the image's own pages are meant.
fn of_volume(pages: &WebPages, asked: &WebRequest<'_>, around: Option<&Surroundings>) -> Option<WebAnswer> {
    let path = asked.target.split('?').next().unwrap_or_default();
    let mut answer = match served_files::answer(pages.web.root, asked, around) {
        Some(answer) => answer,
        None if !pages.is_hidden && pages.web.pages.contains(&path) => return None,
        // No listing of a folder.
        None if path.ends_with('/') && pages.is_hidden => return Some(welcome(pages, 403, asked)),
        None => return Some(welcome(pages, 404, asked)),
    };
    answer.headers.push(("server", pages.name()));
    Some(answer)
}

fn welcome(pages: &WebPages, code: u16, asked: &WebRequest<'_>) -> WebAnswer {
    let name = pages.name();
    let code = if matches!(asked.method, "GET" | "HEAD") { code } else { 405 };
    let page = match code {
        200 => "<html><body><h1>It works!</h1></body></html>\n".to_owned(),
        403 => html("403 Forbidden", &name),
        404 => html("404 Not Found", &name),
        _ => html("405 Not Allowed", &name),
    };
    let mut answered = WebAnswer::typed(code, "text/html", page);
    answered.headers.push(("server", name));
    answered
}

fn html(title: &str, text: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n<p>{text}</p>\n\
         </body>\n</html>\n"
    )
}

/// What somebody says of its health to a server that tells it others.
fn told_of_health(asked: &WebRequest<'_>, state: &mut ServerState) -> WebAnswer {
    match asked.target.split('?').next() {
        Some("/make-serving") => state.is_serving = Some(true),
        Some("/make-not-serving") => state.is_serving = Some(false),
        _ => return WebAnswer::not_found(),
    }
    WebAnswer::text(200, golang::duration::format(asked.uptime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_servers::server;
    use crate::invocation::Invocation;

    fn answer(image: &str, args: &[&str], port: i64, target: &str) -> WebAnswer {
        let args: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
        let server = server(&Invocation::new(image, &[], &args), &[], &[]).unwrap();
        let headers = vec![("user-agent", "curl/8"), ("host", "web")];
        let backing = Backing { around: None, answers: &Default::default(), client: None };
        let served = server.serve(
            port,
            &WebRequest {
                method: "GET",
                target,
                headers,
                from: "10.0.0.9:4000",
                host_name: "web-0",
                address: "10.0.0.1",
                uptime: Duration::from_secs(20),
                now: "2026-01-01T00:00:00Z",
                body: b"",
            },
            &mut ServerState::default(),
            backing,
        );
        match served {
            Served::Answer(answer) => answer,
            Served::Asks(..) => panic!("{image} asks first for {target}"),
        }
    }

    #[test]
    fn known_servers_say_what_they_are_known_for() {
        for (image, args, port, target, code, body) in [
            ("hashicorp/http-echo:1.0", &["-text=hello world"][..], 5678, "/x", 200, "hello world\n"),
            ("hashicorp/http-echo", &["--listen", ":80", "--text", "a"], 80, "/", 200, "a\n"),
            ("httpd:2.4", &[], 80, "/", 200, "<html><body><h1>It works!</h1></body></html>\n"),
            ("e2e/agnhost:2", &["serve-hostname"], 9376, "/", 200, "web-0"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/hostname", 200, "web-0"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/clientip", 200, "10.0.0.9:4000"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/echo?msg=a%20b&code=418", 418, "a b"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/header?key=User-Agent", 200, "curl/8"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/header", 200, "{\"User-Agent\":[\"curl/8\"]}"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/", 200, "NOW: 2026-01-01T00:00:00Z"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/readyz", 200, "ok"),
            ("e2e/agnhost:2", &["netexec"], 8080, "/healthz", 200, ""),
            ("e2e/agnhost:2", &["netexec", "--http-port=81"], 81, "/serverport", 200, "81"),
            (
                "e2e/agnhost:2",
                &["netexec"],
                8080,
                "/redirect?code=b",
                200,
                "argument 'code' must be an integer or empty, got \"b\"\n",
            ),
            ("e2e/agnhost:2", &["netexec", "--http-override=/echo?code=202&msg=x"], 8080, "/", 202, "x"),
            ("e2e/agnhost:2", &["liveness"], 8080, "/healthz", 500, "error: 20"),
            ("e2e/agnhost:2", &["liveness"], 8080, "/started", 200, "20s"),
            ("e2e/agnhost:2", &["liveness"], 8080, "/slow-response", 404, "404 page not found\n"),
            ("e2e/agnhost:2", &["fake-gitserver"], 8000, "/x", 200, "I am a fake git server"),
            (
                "k8s.gcr.io/echoserver:1.4",
                &[],
                8080,
                "/a?b=c",
                200,
                "CLIENT VALUES:\nclient_address=10.0.0.9\ncommand=GET\nreal path=/a\nquery=b=c\n\
                 request_version=1.1\nrequest_uri=http://web/a?b=c\n\nSERVER VALUES:\n\
                 server_version=nginx: 1.10.0 - lua: 10001\n\n\
                 HEADERS RECEIVED:\nuser-agent=curl/8\nhost=web\nBODY:\n-no body in request-",
            ),
            (
                "gcr.io/google-samples/hello-app:2.0",
                &[],
                8080,
                "/",
                200,
                "Hello, world!\nVersion: 2.0.0\nHostname: web-0\n",
            ),
            (
                "traefik/whoami",
                &[],
                80,
                "/a?b",
                200,
                "Hostname: web-0\nIP: 127.0.0.1\nIP: 10.0.0.1\nRemoteAddr: 10.0.0.9:4000\nGET /a?b HTTP/1.1\r\n\
                 Host: web\r\nUser-Agent: curl/8\r\n\r\n",
            ),
        ] {
            let answered = answer(image, args, port, target);
            assert_eq!((answered.code, &*answered.body), (code, body), "{image} {args:?} {target}");
        }
    }

    #[test]
    fn web_servers_have_a_name_and_a_page_for_what_is_missing() {
        let found = answer("nginx:1.25-alpine", &[], 80, "/");
        assert!(found.body.contains("<title>Welcome to nginx!</title>"), "{}", found.body);
        assert_eq!(found.headers.last().unwrap(), &("server", "nginx/1.25.5".to_owned()));
        let missing = answer("nginx", &[], 80, "/none");
        assert_eq!((missing.code, &*missing.headers[1].1), (404, "nginx/1.29.4"));
        let moved = answer("e2e/agnhost:2", &["liveness"], 8080, "/redirect?loc=%2Fx");
        assert_eq!((moved.code, &*moved.body), (302, "<a href=\"/x\">Found</a>.\n\n"));
        assert_eq!(moved.headers[1], ("location", "/x".to_owned()));
    }
}
