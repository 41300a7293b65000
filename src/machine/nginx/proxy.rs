//! `proxy_pass`: what somebody behind nginx says.

use super::answer::ExchangeTurn;
use super::config::{LocationBlock, Matching};
use super::exchange::NginxExchange;
use super::scope::BlockScope;
use crate::agnhost::asking::AskFirst;
use crate::byte_text;
use crate::requests::{WebAnswer, canonical};
use crate::url::WebUrl;

/// How long it waits (`proxy_read_timeout`).
const SECONDS: u64 = 60;
/// Headers that are of a connection, or that it says itself.
const NOT_PASSED: &[&str] =
    &["connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "x-pad"];

impl<'a> NginxExchange<'a> {
    /// Asks whoever is behind it, and says what that one says.
    pub(super) fn proxied(
        &mut self,
        to: &str,
        scope: &'a BlockScope,
        location: Option<&LocationBlock>,
    ) -> Result<ExchangeTurn<'a>, Box<AskFirst>> {
        let filled = self.filled(to);
        let (scheme, rest) = filled.split_once("://").unwrap_or(("http", &filled));
        let at = rest.find('/').unwrap_or(rest.len());
        let (name, own_path) = rest.split_at(at);
        self.proxy_host = name.to_owned();
        let prefix = match location.map(|location| &location.matches) {
            Some(Matching::Prefix(own, _) | Matching::Exact(own)) if NginxExchange::is_fixed(to) => {
                own.as_str()
            }
            _ => "",
        };
        // What a prefix with a slash is for is not without it.
        let target = self.passed_target(own_path, prefix, NginxExchange::is_fixed(to));
        let servers = self.site.config().upstreams.get(name);
        let server = match servers {
            Some(servers) => match servers.get(self.turn_of(servers.len())) {
                Some(server) => server.clone(),
                None => return Ok(ExchangeTurn::Error(502, scope)),
            },
            None => name.to_owned(),
        };
        let url = format!("{scheme}://{server}{target}");
        if WebUrl::parse(&url).is_err() {
            return Ok(ExchangeTurn::Error(500, scope));
        }
        let ran = self.ask(&url, scope)?;
        Ok(match ran {
            Err(28) => ExchangeTurn::Error(504, scope),
            Err(_) => ExchangeTurn::Error(502, scope),
            Ok(answered) if scope.intercepts_errors && answered.code >= 300 && has_page(scope, &answered) => {
                ExchangeTurn::Error(answered.code, scope)
            }
            Ok(mut answered) => {
                self.lead_back(&mut answered, &filled, prefix);
                ExchangeTurn::Answer(answered, scope)
            }
        })
    }

    /// Whose turn it is, by the port of who asks: nothing is kept between requests.
    fn turn_of(&self, count: usize) -> usize {
        let port = self.asked.from.rsplit(':').next().and_then(|port| port.parse::<usize>().ok());
        port.unwrap_or_default().checked_rem(count).unwrap_or_default()
    }

    fn passed_target(&self, own_path: &str, prefix: &str, is_fixed: bool) -> String {
        let args = if self.args.is_empty() { String::new() } else { format!("?{}", self.args) };
        match (own_path, self.is_as_asked) {
            ("", true) => self.asked.target.to_owned(),
            ("", false) => format!("{}{args}", self.path),
            // With variables in it, it is the whole.
            (own, _) if !is_fixed => own.to_owned(),
            (own, _) => format!("{own}{}{args}", self.path.strip_prefix(prefix).unwrap_or_default()),
        }
    }

    /// Its client ran into that code, where nobody answered.
    fn ask(&self, url: &str, scope: &BlockScope) -> Result<Result<WebAnswer, i32>, Box<AskFirst>> {
        let mut headers = self.passed_headers(scope);
        headers.push(("Connection".to_owned(), "close".to_owned()));
        let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let names: Vec<String> = (0..lines.len()).map(|at| format!("NGINX_HEADER_{at}")).collect();
        let flags: String = names.iter().map(|name| format!(" -H \"${name}\"")).collect();
        let body = byte_text::text_of(self.asked.body);
        let method = self.asked.method;
        let how = if method == "HEAD" { "-I".to_owned() } else { format!("-i -X {method}") };
        let data = if body.is_empty() { "" } else { " --data-binary \"$NGINX_BODY\"" };
        let script = format!("curl -s -k {how} --max-time {SECONDS}{flags}{data} \"$NGINX_URL\"");
        let mut variables: Vec<(&str, &str)> = vec![("NGINX_URL", url), ("NGINX_BODY", &body)];
        variables.extend(names.iter().map(String::as_str).zip(lines.iter().map(String::as_str)));
        let ran = self.backing.run(&script, &variables)?;
        Ok(match ran.end {
            Some((_, 0)) => read(&ran.out).ok_or(52),
            end => Err(end.map_or(28, |(_, code)| code)),
        })
    }

    fn passed_headers(&self, scope: &BlockScope) -> Vec<(String, String)> {
        let own = |name: &str| scope.proxy_headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let is_passed = |(name, _): &&(&str, &str)| {
            !matches!(*name, "host" | "connection" | "content-length" | "transfer-encoding") && !own(name)
        };
        let asked = self.asked.headers.iter().filter(is_passed);
        let mut headers: Vec<(String, String)> =
            asked.map(|(name, value)| (canonical(name), (*value).to_owned())).collect();
        if !own("host") {
            headers.push(("Host".to_owned(), self.proxy_host.clone()));
        }
        let set = scope.proxy_headers.iter().map(|(name, value)| (name.clone(), self.filled(value)));
        headers.extend(
            set.filter(|(name, value)| !value.is_empty() && !name.eq_ignore_ascii_case("connection")),
        );
        headers
    }

    /// A place that is behind it is named as it is before it (`proxy_redirect default`).
    fn lead_back(&self, answered: &mut WebAnswer, to: &str, prefix: &str) {
        for (name, value) in &mut answered.own_headers {
            if name.eq_ignore_ascii_case("location")
                && !to.is_empty()
                && let Some(rest) = value.strip_prefix(to)
            {
                let path = if prefix.is_empty() { "" } else { prefix };
                *value = format!("{}{path}{rest}", self.origin());
            }
        }
    }
}

fn has_page(scope: &BlockScope, answered: &WebAnswer) -> bool {
    scope.error_pages.iter().any(|(codes, ..)| codes.contains(&answered.code))
}

/// What `curl -i` wrote.
fn read(text: &str) -> Option<WebAnswer> {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.trim_end(), ""));
    let mut lines = head.lines();
    let code = lines.next()?.split_whitespace().nth(1)?.parse().ok()?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_passed = !NOT_PASSED.iter().any(|own| own.eq_ignore_ascii_case(name));
        is_passed.then(|| (canonical(name), value.trim().to_owned()))
    };
    let own_headers = lines.filter_map(header).collect();
    Some(WebAnswer { code, own_headers, body: body.to_owned(), ..WebAnswer::default() })
}
