//! One request to nginx: the server and the location that it is for.

use std::collections::BTreeMap;

use super::NginxSite;
use super::config::{LocationBlock, Matching, ServerBlock};
use super::patterns::ConfPattern;
use crate::agnhost::asking::Backing;
use crate::byte_text;
use crate::requests::WebRequest;
use chrono::{DateTime, Utc};

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
    /// Whether what is said for the whole server is done already.
    pub(super) is_past_server: bool,
    pub(super) set: BTreeMap<String, String>,
    pub(super) captures: Vec<String>,
    pub(super) root: String,
    pub(super) proxy_host: String,
    pub(super) proxy_port: String,
    /// Of the answer, for the log.
    pub(super) code: u16,
    pub(super) sent: usize,
    /// When the line of the log is of, while that is written: what is missing is a dash there.
    pub(super) logged_at: Option<DateTime<Utc>>,
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
            path: plain_path(&decoded(path)),
            args: args.to_owned(),
            is_as_asked: true,
            is_past_server: false,
            set: BTreeMap::new(),
            captures: vec![],
            root: host.scope.root.clone(),
            proxy_host: String::new(),
            proxy_port: String::new(),
            code: 0,
            sent: 0,
            logged_at: None,
        };
        exchange.note_name_captures();
        Some(exchange)
    }

    /// A pattern of a `server_name` may have groups.
    fn note_name_captures(&mut self) {
        if self.host.name_patterns.is_empty() {
            return;
        }
        let name = self.host_name();
        let host = self.host;
        if let Some(found) = host.name_patterns.iter().find(|own| own.is_match(&name)) {
            self.capture(found, &name);
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

    /// Whether a text fits; its groups are kept then.
    pub(super) fn capture(&mut self, pattern: &ConfPattern, text: &str) -> bool {
        let Some(pattern) = pattern.compiled() else { return false };
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
        if let Matching::Pattern(own) = &location.matches {
            let path = self.path.clone();
            self.capture(own, &path);
        }
        Some(location)
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

/// Without `%20` and its kin; bytes that are no letters stay what they are.
fn decoded(path: &str) -> String {
    if !path.contains('%') {
        return path.to_owned();
    }
    let bytes: Vec<u8> = percent_encoding::percent_decode(&byte_text::bytes_of(path)).collect();
    byte_text::text_of(&bytes)
}

/// Without `.`, `..` and doubled slashes.
fn plain_path(path: &str) -> String {
    if path.starts_with('/') && !path.contains("//") && !path.contains("/.") {
        return path.to_owned();
    }
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
    let fits: [fn(&str, &str) -> bool; 3] = [
        |own, name| own.eq_ignore_ascii_case(name) || own.strip_prefix('.') == Some(name),
        |own, name| {
            let end = own.strip_prefix('*').or_else(|| own.strip_prefix('.').map(|_| own));
            end.is_some_and(|end| name.ends_with(&end.to_ascii_lowercase()) && name.len() > end.len())
        },
        |own, name| own.strip_suffix('*').is_some_and(|start| name.starts_with(&start.to_ascii_lowercase())),
    ];
    let of_kind = |fits: &fn(&str, &str) -> bool| {
        here.iter().find(|host| host.names.iter().any(|own| fits(own, name))).copied()
    };
    let of_pattern = || here.iter().find(|host| host.name_patterns.iter().any(|own| own.is_match(name)));
    let is_default =
        |host: &&&ServerBlock| host.listens.iter().any(|listen| listen.port == port && listen.is_default);
    let named = fits.iter().find_map(of_kind).or_else(|| of_pattern().copied());
    named.or_else(|| here.iter().find(is_default).or(here.first()).copied())
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
        Matching::Pattern(own) => own.is_match(path),
        _ => false,
    };
    match locations.iter().find(is_pattern) {
        Some(own) => Some(find(&own.inner, path).unwrap_or(own)),
        None => longest.map(|(.., own)| own),
    }
}
