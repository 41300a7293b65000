//! One request to nginx: the server and the location that it is for, and what the rewrite module does.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use regex::{Regex, RegexBuilder};

use super::NginxSite;
use super::config::{LocationBlock, Matching, ServerBlock};
use super::scope::RewriteStep;
use crate::agnhost::asking::Backing;
use crate::requests::WebRequest;

/// A pattern that takes more than this is none.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What is known of a request while it is answered.
pub(super) struct NginxExchange<'a> {
    pub(super) site: &'a NginxSite,
    pub(super) host: &'a ServerBlock,
    pub(super) port: i64,
    pub(super) asked: &'a WebRequest<'a>,
    pub(super) backing: Backing<'a>,
    /// Decoded, as rewrites leave it.
    pub(super) path: String,
    pub(super) args: String,
    /// Whether it is still what was asked.
    pub(super) is_as_asked: bool,
    pub(super) set: BTreeMap<String, String>,
    pub(super) captures: Vec<String>,
    pub(super) root: String,
    pub(super) proxy_host: String,
    /// Of the answer, for the log.
    pub(super) code: u16,
    pub(super) sent: usize,
    /// When the line of the log is of, while that is written: what is missing is a dash there.
    pub(super) logged_at: Option<DateTime<Utc>>,
}

/// What comes of actions.
pub(super) enum RewriteEnd {
    /// Nothing that ends it.
    Goes,
    /// A location is looked for again.
    Again,
    /// This is answered: a code, and a text or a place.
    Returns(u16, Option<String>),
}

/// A pattern as nginx has it; nothing for what the regex crate does not read.
pub(super) fn pattern(text: &str, ignores_case: bool) -> Option<Regex> {
    let text = if ignores_case { text.trim_start_matches('*') } else { text };
    RegexBuilder::new(text).case_insensitive(ignores_case).size_limit(MAX_PATTERN_BYTES).build().ok()
}

impl<'a> NginxExchange<'a> {
    pub(super) fn new(
        site: &'a NginxSite,
        port: i64,
        asked: &'a WebRequest<'a>,
        backing: Backing<'a>,
    ) -> Option<NginxExchange<'a>> {
        let (path, args) = asked.target.split_once('?').unwrap_or((asked.target, ""));
        let name = asked.header("host").unwrap_or_default();
        let host = host_of(&site.config.hosts, port, &without_port(name))?;
        let mut exchange = NginxExchange {
            site,
            host,
            port,
            asked,
            backing,
            path: plain_path(&percent_encoding::percent_decode_str(path).decode_utf8_lossy()),
            args: args.to_owned(),
            is_as_asked: true,
            set: BTreeMap::new(),
            captures: vec![],
            root: host.scope.root.clone(),
            proxy_host: String::new(),
            code: 0,
            sent: 0,
            logged_at: None,
        };
        exchange.note_name_captures();
        Some(exchange)
    }

    /// A pattern of a `server_name` may have groups.
    fn note_name_captures(&mut self) {
        let mut patterns = self.host.names.iter().filter_map(|own| own.strip_prefix('~')).peekable();
        if patterns.peek().is_none() {
            return;
        }
        let name = self.host_name();
        let found = patterns.filter_map(|own| pattern(own, true)).find(|own| own.is_match(&name));
        if let Some(found) = found {
            self.capture(&found, &name);
        }
    }

    pub(super) fn host_name(&self) -> String {
        match self.asked.header("host") {
            Some(host) if !host.is_empty() => without_port(host),
            _ => self.host.names.first().cloned().unwrap_or_default(),
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        self.host.listens.iter().any(|listen| listen.port == self.port && listen.is_tls)
    }

    /// `http://host:port`, for redirects.
    pub(super) fn origin(&self) -> String {
        let (scheme, usual) = if self.is_tls() { ("https", 443) } else { ("http", 80) };
        let port = if self.port == usual { String::new() } else { format!(":{}", self.port) };
        format!("{scheme}://{}{port}", self.host_name())
    }

    /// Another path, which may have a query.
    pub(super) fn go_to(&mut self, target: &str) {
        let (path, args) = target.split_once('?').unwrap_or((target, ""));
        self.path = plain_path(path);
        if target.contains('?') {
            self.args = args.to_owned();
        }
        self.is_as_asked = false;
    }

    fn capture(&mut self, pattern: &Regex, text: &str) -> bool {
        let Some(found) = pattern.captures(text) else { return false };
        let of =
            |group: Option<regex::Match<'_>>| group.map_or(String::new(), |group| group.as_str().to_owned());
        self.captures = found.iter().map(of).collect();
        for name in pattern.capture_names().flatten() {
            self.set.insert(name.to_owned(), of(found.name(name)));
        }
        true
    }

    /// The location of the path; nothing where none is.
    pub(super) fn location(&mut self) -> Option<&'a LocationBlock> {
        let location = find(&self.host.locations, &self.path)?;
        if let Matching::Pattern(own) = &location.matches
            && let Some(pattern) = pattern(own, false)
        {
            let path = self.path.clone();
            self.capture(&pattern, &path);
        }
        Some(location)
    }

    /// What the rewrite module does.
    pub(super) fn act(&mut self, actions: &[RewriteStep]) -> RewriteEnd {
        for action in actions {
            let acted = match action {
                RewriteStep::Set(name, value) => {
                    let value = self.filled(value);
                    self.set.insert(name.clone(), value);
                    RewriteEnd::Goes
                }
                RewriteStep::Return(words) => self.returned(words),
                RewriteStep::Rewrite(words) => match self.rewritten(words) {
                    Some(acted) => acted,
                    // `break`
                    None => return RewriteEnd::Goes,
                },
                RewriteStep::If(words, inner) if self.holds(words) => {
                    if inner.contains(&RewriteStep::Break) {
                        self.act(inner);
                        return RewriteEnd::Goes;
                    }
                    self.act(inner)
                }
                RewriteStep::If(..) => RewriteEnd::Goes,
                RewriteStep::Break => return RewriteEnd::Goes,
            };
            if !matches!(acted, RewriteEnd::Goes) {
                return acted;
            }
        }
        RewriteEnd::Goes
    }

    fn returned(&self, words: &[String]) -> RewriteEnd {
        match words {
            [one] => match one.parse() {
                Ok(code) => RewriteEnd::Returns(code, None),
                Err(_) => RewriteEnd::Returns(302, Some(self.filled(one))),
            },
            [code, text, ..] => RewriteEnd::Returns(code.parse().unwrap_or(500), Some(self.filled(text))),
            [] => RewriteEnd::Goes,
        }
    }

    /// Nothing where the others are not looked at.
    fn rewritten(&mut self, words: &[String]) -> Option<RewriteEnd> {
        let [own, to, flags @ ..] = words else { return Some(RewriteEnd::Goes) };
        let path = self.path.clone();
        let Some(found) = pattern(own, false) else { return Some(RewriteEnd::Goes) };
        if !self.capture(&found, &path) {
            return Some(RewriteEnd::Goes);
        }
        let flag = flags.first().map_or("", String::as_str);
        let code = match flag {
            "permanent" => Some(301),
            "redirect" => Some(302),
            _ if to.contains("://") => Some(302),
            _ => None,
        };
        let mut target = self.filled(to);
        // The query stays, unless the text ends with a question mark.
        if let Some(whole) = target.strip_suffix('?') {
            target = whole.to_owned();
            self.args.clear();
        } else if !self.args.is_empty() && code.is_some() {
            let sign = if target.contains('?') { '&' } else { '?' };
            target = format!("{target}{sign}{}", self.args);
        }
        if let Some(code) = code {
            return Some(RewriteEnd::Returns(code, Some(target)));
        }
        self.go_to(&target);
        match flag {
            "last" => Some(RewriteEnd::Again),
            "break" => None,
            _ => Some(RewriteEnd::Goes),
        }
    }

    /// What an `if` asks.
    fn holds(&mut self, words: &[String]) -> bool {
        let unquoted = |word: &String| word.trim_matches(['"', '\'']).to_owned();
        match words {
            [one] => !matches!(self.filled(one).as_str(), "" | "0"),
            [sign, path] if sign == "-f" || sign == "!-f" => {
                let path = self.filled(path);
                self.file(&path).is_some() == (sign == "-f")
            }
            [left, sign, rest @ ..] => {
                let (left, right) =
                    (self.filled(left), rest.iter().map(unquoted).collect::<Vec<_>>().join(" "));
                match sign.as_str() {
                    "=" => left == self.filled(&right),
                    "!=" => left != self.filled(&right),
                    "~" | "~*" => pattern(&right, sign == "~*").is_some_and(|own| self.capture(&own, &left)),
                    "!~" | "!~*" => pattern(&right, sign == "!~*").is_some_and(|own| !own.is_match(&left)),
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

/// `web:8080` is `web`.
fn without_port(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|letter| letter.is_ascii_digit()) => name,
        _ => host,
    };
    name.to_ascii_lowercase()
}

/// Without `.`, `..` and doubled slashes.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// The server of a name, among those that listen there; else the default one.
fn host_of<'a>(hosts: &'a [ServerBlock], port: i64, name: &str) -> Option<&'a ServerBlock> {
    let here: Vec<&ServerBlock> =
        hosts.iter().filter(|host| host.listens.iter().any(|listen| listen.port == port)).collect();
    let fits: [fn(&str, &str) -> bool; 4] = [
        |own, name| own.eq_ignore_ascii_case(name) || own.strip_prefix('.') == Some(name),
        |own, name| {
            let end = own.strip_prefix('*').or_else(|| own.strip_prefix('.').map(|_| own));
            end.is_some_and(|end| name.ends_with(&end.to_ascii_lowercase()) && name.len() > end.len())
        },
        |own, name| own.strip_suffix('*').is_some_and(|start| name.starts_with(&start.to_ascii_lowercase())),
        |own, name| {
            own.strip_prefix('~').is_some_and(|own| pattern(own, true).is_some_and(|own| own.is_match(name)))
        },
    ];
    let of_kind = |fits: &fn(&str, &str) -> bool| {
        here.iter().find(|host| host.names.iter().any(|own| fits(own, name))).copied()
    };
    let is_default =
        |host: &&&ServerBlock| host.listens.iter().any(|listen| listen.port == port && listen.is_default);
    fits.iter().find_map(of_kind).or_else(|| here.iter().find(is_default).or(here.first()).copied())
}

/// As nginx looks: the same path, then the longest beginning, then patterns in their order.
fn find<'a>(locations: &'a [LocationBlock], path: &str) -> Option<&'a LocationBlock> {
    let exact = |own: &&LocationBlock| matches!(&own.matches, Matching::Exact(own) if own == path);
    if let Some(found) = locations.iter().find(exact) {
        return Some(found);
    }
    let prefix = |own: &'a LocationBlock| match &own.matches {
        Matching::Prefix(prefix, is_last) if path.starts_with(prefix.as_str()) => {
            Some((prefix.len(), *is_last, own))
        }
        _ => None,
    };
    let longest = locations.iter().filter_map(prefix).max_by_key(|(length, ..)| *length);
    if let Some((_, is_last, own)) = longest {
        if let Some(inner) = find(&own.inner, path) {
            return Some(inner);
        }
        if is_last {
            return Some(own);
        }
    }
    let is_pattern = |own: &&LocationBlock| match &own.matches {
        Matching::Pattern(own) => pattern(own, false).is_some_and(|own| own.is_match(path)),
        _ => false,
    };
    match locations.iter().find(is_pattern) {
        Some(own) => Some(find(&own.inner, path).unwrap_or(own)),
        None => longest.map(|(.., own)| own),
    }
}
