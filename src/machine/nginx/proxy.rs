//! `proxy_pass`: what somebody behind nginx says.

use std::time::Duration;

use percent_encoding::{AsciiSet, percent_encode};

use super::answer::ExchangeTurn;
use super::config::{LocationBlock, Matching};
use super::exchange::NginxExchange;
use super::scope::{BlockScope, LeadBack};
use crate::agnhost::asking::AskFirst;
use crate::byte_text;
use crate::passing_on::{self, PassedRequest};
use crate::requests::{WebAnswer, canonical};
use crate::url::WebUrl;

/// How long it waits (`proxy_read_timeout`).
const PATIENCE: Duration = Duration::from_secs(60);
/// Characters that nginx encodes in paths: braces and bars beside what others encode.
const NOT_IN_PATHS: &AsciiSet = &passing_on::NOT_IN_PATHS.add(b'{').add(b'|').add(b'}');

/// Where one asks: a `proxy_pass` with its variables filled.
struct PassedTo<'a> {
    filled: &'a str,
    /// The path that it has itself.
    own_path: &'a str,
    /// The beginning of the location that stands for that path.
    prefix: &'a str,
    /// Whether it has no variables.
    is_fixed: bool,
}

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
        let usual = if scheme == "https" { "443" } else { "80" };
        self.proxy_port = name.rsplit_once(':').map_or(usual, |(_, port)| port).to_owned();
        let is_fixed = NginxExchange::is_fixed(to);
        let prefix = match location.map(|location| &location.matches) {
            Some(Matching::Prefix(own, _) | Matching::Exact(own)) if is_fixed => own.as_str(),
            _ => "",
        };
        let passed = PassedTo { filled: &filled, own_path, prefix, is_fixed };
        let target = self.passed_target(&passed);
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
                self.lead_back(&mut answered, &passed, scope);
                ExchangeTurn::Answer(answered, scope)
            }
        })
    }

    /// Whose turn it is, by the port of who asks: nothing is kept between requests.
    fn turn_of(&self, count: usize) -> usize {
        let port = self.asked.from.rsplit(':').next().and_then(|port| port.parse::<usize>().ok());
        port.unwrap_or_default().checked_rem(count).unwrap_or_default()
    }

    fn passed_target(&self, to: &PassedTo<'_>) -> String {
        let args = if self.args.is_empty() { String::new() } else { format!("?{}", self.args) };
        match (to.own_path, self.is_as_asked) {
            ("", true) => self.asked.target.to_owned(),
            ("", false) => format!("{}{args}", encoded(&self.path)),
            // With variables in it, it is the whole.
            (own, _) if !to.is_fixed => own.to_owned(),
            (own, _) => {
                format!("{own}{}{args}", encoded(self.path.strip_prefix(to.prefix).unwrap_or_default()))
            }
        }
    }

    /// Its client ran into that code, where nobody answered.
    fn ask(&self, url: &str, scope: &BlockScope) -> Result<Result<WebAnswer, i32>, Box<AskFirst>> {
        let request = PassedRequest {
            url,
            method: self.asked.method,
            headers: self.passed_headers(scope),
            body: self.asked.body,
            within: PATIENCE,
        };
        request.send(self.backing)
    }

    fn passed_headers(&self, scope: &BlockScope) -> Vec<(String, String)> {
        let own = |name: &str| scope.proxy_headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let is_passed = |(name, _): &&(&str, &str)| {
            !matches!(*name, "host" | "connection" | "content-length" | "transfer-encoding")
                && !own(name)
                && (scope.hears_underscores || !name.contains('_'))
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

    /// A place that is behind it is named as it is before it: by the first pair that it begins with.
    fn lead_back(&self, answered: &mut WebAnswer, to: &PassedTo<'_>, scope: &BlockScope) {
        for (name, value) in &mut answered.own_headers {
            if !name.eq_ignore_ascii_case("location") {
                continue;
            }
            let led = scope.leads_back.iter().find_map(|pair| self.led_back(value, pair, to));
            if let Some(led) = led {
                *value = if led.starts_with('/') { format!("{}{led}", self.origin()) } else { led };
            }
        }
    }

    /// Nothing where a place does not begin so.
    fn led_back(&self, place: &str, pair: &LeadBack, to: &PassedTo<'_>) -> Option<String> {
        let (from, instead) = match pair {
            LeadBack::Pair(from, instead) => (self.filled(from), self.filled(instead)),
            LeadBack::Default if !to.is_fixed => return None,
            LeadBack::Default if to.own_path.is_empty() => (format!("{}/", to.filled), "/".to_owned()),
            LeadBack::Default => (to.filled.to_owned(), to.prefix.to_owned()),
        };
        let rest = place.strip_prefix(&from)?;
        Some(format!("{instead}{rest}"))
    }
}

/// A decoded path as it stands in a request.
fn encoded(path: &str) -> String {
    percent_encode(&byte_text::bytes_of(path), NOT_IN_PATHS).to_string()
}

fn has_page(scope: &BlockScope, answered: &WebAnswer) -> bool {
    scope.error_pages.iter().any(|(codes, ..)| codes.contains(&answered.code))
}
