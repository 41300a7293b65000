//! What nginx answers: what a location says, a file, or what somebody behind it says.

use std::net::IpAddr;

use super::config::{LocationBlock, Matching, NginxConfig};
use super::exchange::NginxExchange;
use super::rewriting::RewriteEnd;
use super::scope::BlockScope;
use super::{NginxSite, variables};
use crate::agnhost::asking::{AskFirst, Backing};
use crate::questions;
use crate::requests::{WebAnswer, WebRequest};

/// So often may one place lead to another.
const MAX_REDIRECTS: usize = 10;

/// What comes of one look.
pub(super) enum ExchangeTurn<'a> {
    Answer(WebAnswer, &'a BlockScope),
    /// An error page of its own, which the configuration may replace.
    Error(u16, &'a BlockScope),
    /// The path is another one now.
    Again,
}

impl NginxSite {
    /// What is answered at a port.
    ///
    /// # Errors
    /// What is asked first of whoever is behind it.
    pub(crate) fn answer(
        &self,
        port: i64,
        asked: &WebRequest<'_>,
        backing: Backing<'_>,
    ) -> Result<WebAnswer, Box<AskFirst>> {
        let Some(mut exchange) = NginxExchange::new(self, port, asked, backing) else {
            return Ok(WebAnswer::not_found());
        };
        exchange.answered()
    }

    pub(super) fn config(&self) -> &NginxConfig {
        &self.config
    }
}

impl<'a> NginxExchange<'a> {
    fn answered(&mut self) -> Result<WebAnswer, Box<AskFirst>> {
        // The code that an error page is for.
        let mut failed: Option<(u16, Option<u16>)> = None;
        let mut redirects = 0;
        let (answered, scope) = loop {
            let turn = match self.turn(failed.is_some()) {
                _ if redirects > MAX_REDIRECTS => ExchangeTurn::Error(500, &self.host.scope),
                turn => turn?,
            };
            redirects += 1;
            match turn {
                ExchangeTurn::Again => {}
                ExchangeTurn::Answer(answered, scope) => break (answered, scope),
                ExchangeTurn::Error(code, scope) => {
                    let page = scope.error_pages.iter().find(|(codes, ..)| codes.contains(&code));
                    let Some((_, instead, page)) = page.filter(|_| failed.is_none()) else {
                        break (self.error(code), scope);
                    };
                    let page = self.filled(page);
                    if page.contains("://") {
                        break (self.redirect(instead.unwrap_or(302), page), scope);
                    }
                    failed = Some((code, *instead));
                    self.go_to_page(&page);
                }
            }
        };
        let mut answered = answered;
        if let Some((code, instead)) = failed.filter(|_| answered.code == 200) {
            answered.code = instead.unwrap_or(code);
        }
        Ok(self.finished(answered, scope))
    }

    fn go_to_page(&mut self, page: &str) {
        if page.starts_with('@') {
            self.set.insert(NAMED.to_owned(), page.to_owned());
        } else {
            self.go_to(page);
        }
    }

    /// With the headers of each answer.
    fn finished(&mut self, mut answered: WebAnswer, scope: &BlockScope) -> WebAnswer {
        const PLAIN: &[u16] = &[200, 201, 204, 206, 301, 302, 303, 304, 307, 308];
        self.code = answered.code;
        for (name, value, is_always) in &scope.headers {
            if *is_always || PLAIN.contains(&answered.code) {
                let value = self.filled(value);
                if !value.is_empty() {
                    answered.own_headers.push((name.clone(), value));
                }
            }
        }
        answered.headers.push(("server", self.shown_name(scope)));
        say_charset(&mut answered, scope);
        answered
    }

    fn shown_name(&self, scope: &BlockScope) -> String {
        if scope.shows_version { format!("nginx/{}", self.site.version) } else { "nginx".to_owned() }
    }

    /// As error pages end.
    pub(super) fn server_name(&self) -> String {
        self.shown_name(&self.host.scope)
    }

    fn error(&self, code: u16) -> WebAnswer {
        WebAnswer::typed(code, "text/html", error_body(code, &self.server_name()))
    }

    fn redirect(&self, code: u16, to: String) -> WebAnswer {
        let mut answered = self.error(code);
        let to = if to.starts_with('/') { format!("{}{to}", self.origin()) } else { to };
        answered.headers.push(("location", to));
        answered
    }

    fn turn(&mut self, is_inner: bool) -> Result<ExchangeTurn<'a>, Box<AskFirst>> {
        let host = self.host;
        let named = self.set.remove(NAMED);
        // A location that names another path does not begin with the server again.
        let is_past_server = std::mem::take(&mut self.is_past_server);
        if named.is_none() && !is_past_server {
            match self.act(&host.scope.actions) {
                RewriteEnd::Returns(code, text) => return Ok(self.said(code, text, &host.scope)),
                RewriteEnd::Again | RewriteEnd::Goes => {}
            }
        }
        let location = match &named {
            Some(name) => {
                let is_it =
                    |own: &&LocationBlock| matches!(&own.matches, Matching::Named(own) if own == name);
                host.locations.iter().find(is_it)
            }
            None => self.location(),
        };
        let scope = location.map_or(&host.scope, |location| &location.scope);
        if scope.is_internal && !is_inner && self.is_as_asked {
            return Ok(ExchangeTurn::Error(404, scope));
        }
        if scope.max_body.is_some_and(|most| self.asked.body.len() as u64 > most) {
            return Ok(ExchangeTurn::Error(413, scope));
        }
        if let Some(location) = location {
            match self.act(&location.scope.actions) {
                RewriteEnd::Returns(code, text) => return Ok(self.said(code, text, scope)),
                RewriteEnd::Again => {
                    self.is_past_server = true;
                    return Ok(ExchangeTurn::Again);
                }
                RewriteEnd::Goes => {}
            }
        }
        if !self.may_ask(scope) {
            return Ok(ExchangeTurn::Error(403, scope));
        }
        self.root = self.filled(&scope.root);
        if let Some(turn) = self.tried(scope, location) {
            return Ok(turn);
        }
        if let Some(to) = &scope.proxy {
            return self.proxied(to, scope, location);
        }
        if scope.is_status {
            let text = "Active connections: 1 \nserver accepts handled requests\n 1 1 1 \n\
                Reading: 0 Writing: 1 Waiting: 0 \n";
            return Ok(ExchangeTurn::Answer(WebAnswer::typed(200, "text/plain", text), scope));
        }
        Ok(self.content(scope, location))
    }

    fn said(&mut self, code: u16, text: Option<String>, scope: &'a BlockScope) -> ExchangeTurn<'a> {
        match (code, text) {
            (301 | 302 | 303 | 307 | 308, Some(to)) => ExchangeTurn::Answer(self.redirect(code, to), scope),
            (code, Some(text)) => {
                let mut answered = WebAnswer::typed(code, "", text);
                answered.headers = vec![("content-type", self.media_type(scope))];
                ExchangeTurn::Answer(answered, scope)
            }
            (300.., None) => ExchangeTurn::Error(code, scope),
            (code, None) => ExchangeTurn::Answer(WebAnswer { code, ..WebAnswer::default() }, scope),
        }
    }

    /// `allow` and `deny`.
    fn may_ask(&self, scope: &BlockScope) -> bool {
        if scope.access.is_empty() {
            return true;
        }
        let from: Option<IpAddr> = self.filled("$remote_addr").parse().ok();
        let fits = |rule: &str| rule == "all" || from.is_some_and(|from| is_in(rule, from));
        scope.access.iter().find(|(_, rule)| fits(rule)).is_none_or(|(is_allowed, _)| *is_allowed)
    }

    /// `try_files`; nothing where the path is to be looked at as usual.
    fn tried(&mut self, scope: &'a BlockScope, location: Option<&LocationBlock>) -> Option<ExchangeTurn<'a>> {
        let (last, tries) = scope.tries.split_last()?;
        for own in tries {
            let path = self.filled(own);
            // A folder goes on without the slash that asks for one: whoever asked without is led there.
            let folder = own.ends_with('/').then(|| path.strip_suffix('/')).flatten();
            let path = folder.map_or_else(|| path.clone(), str::to_owned);
            let at = self.place(&path, scope, location);
            let is_there = if folder.is_some() { self.is_folder(&at) } else { self.file(&at).is_some() };
            if is_there {
                self.path = path;
                return None;
            }
        }
        let last = self.filled(last);
        Some(match last.strip_prefix('=') {
            Some(code) => ExchangeTurn::Error(code.parse().unwrap_or(404), scope),
            None => {
                self.go_to_page(&last);
                ExchangeTurn::Again
            }
        })
    }

    /// Where a path's file is.
    fn place(&self, path: &str, scope: &BlockScope, location: Option<&LocationBlock>) -> String {
        let Some(alias) = &scope.alias else { return format!("{}{path}", self.root) };
        let alias = self.filled(alias);
        match location.map(|location| &location.matches) {
            Some(Matching::Prefix(own, _) | Matching::Exact(own)) => {
                format!("{alias}{}", path.strip_prefix(own.as_str()).unwrap_or_default())
            }
            _ => alias,
        }
    }

    fn content(&mut self, scope: &'a BlockScope, location: Option<&LocationBlock>) -> ExchangeTurn<'a> {
        let path = self.path.clone();
        let at = self.place(&path, scope, location);
        if !path.ends_with('/') {
            if let Some(found) = self.file(&at) {
                // Files are only read.
                let is_read = matches!(self.asked.method, "GET" | "HEAD");
                let answered = || ExchangeTurn::Answer(self.with_file(found, scope), scope);
                return if is_read { answered() } else { ExchangeTurn::Error(405, scope) };
            }
            if self.is_folder(&at) {
                let args = if self.args.is_empty() { String::new() } else { format!("?{}", self.args) };
                return ExchangeTurn::Answer(self.redirect(301, format!("{path}/{args}")), scope);
            }
            return ExchangeTurn::Error(404, scope);
        }
        for index in &scope.index {
            let index = self.filled(index);
            if self.file(&format!("{at}{index}")).is_some() {
                self.path = format!("{path}{index}");
                self.is_as_asked = false;
                return ExchangeTurn::Again;
            }
        }
        if !self.is_folder(&at) {
            return ExchangeTurn::Error(404, scope);
        }
        if scope.lists_folders {
            return ExchangeTurn::Answer(self.listing(&at), scope);
        }
        ExchangeTurn::Error(403, scope)
    }

    /// A text of which nothing is known before the request.
    pub(super) fn is_fixed(text: &str) -> bool {
        !variables::has_any(text)
    }
}

/// The types that are said with a `charset` (`charset_types`).
const WITH_CHARSET: &[&str] = &[
    "application/javascript",
    "application/rss+xml",
    "text/html",
    "text/plain",
    "text/vnd.wap.wml",
    "text/xml",
];

fn say_charset(answered: &mut WebAnswer, scope: &BlockScope) {
    let Some(charset) = &scope.charset else { return };
    let own = answered.own_headers.iter_mut().map(|(name, value)| (name.as_str(), value));
    let all = answered.headers.iter_mut().map(|(name, value)| (*name, value)).chain(own);
    for (name, value) in all {
        if name.eq_ignore_ascii_case("content-type") && WITH_CHARSET.contains(&value.as_str()) {
            value.push_str(&format!("; charset={charset}"));
        }
    }
}

/// The variable in which the name of the next location is; no configuration can name it.
const NAMED: &str = "@";

/// An error page of nginx's own.
pub(super) fn error_body(code: u16, server: &str) -> String {
    let phrase = match code {
        302 => "Found",
        405 => "Not Allowed",
        413 => "Request Entity Too Large",
        416 => "Requested Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        code => questions::phrase(code),
    };
    let title = format!("{code} {phrase}");
    let title = title.trim_end();
    format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n\
         <hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
    )
}

/// Whether an address is one of `10.0.0.0/8`, or that.
fn is_in(rule: &str, from: IpAddr) -> bool {
    let (network, length) = rule.split_once('/').unwrap_or((rule, ""));
    let Ok(network) = network.parse::<IpAddr>() else { return false };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(own) => (u128::from(u32::from(own)), 32),
        IpAddr::V6(own) => (u128::from(own), 128),
    };
    let ((own, width), (other, of)) = (bits(network), bits(from));
    let length = length.parse().unwrap_or(width).min(width);
    let unlike = width - length;
    width == of && (unlike >= 128 || own >> unlike == other >> unlike)
}
