//! nginx's variables, and its texts with variables in them.

use std::borrow::Cow;

use super::exchange::NginxExchange;
use crate::common_time::common_time;
use crate::requests::parameter;

/// So deep may maps lead to one another.
const MAX_DEPTH: usize = 4;
/// So long may a text become.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// What is around a variable's name.
enum TextPart<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// What is left of a text with `$name`, `${name}`, `$1` in it.
struct TextParts<'a> {
    rest: &'a str,
    /// A variable stands before the rest.
    next: Option<&'a str>,
}

fn parts(text: &str) -> TextParts<'_> {
    TextParts { rest: text, next: None }
}

impl<'a> Iterator for TextParts<'a> {
    type Item = TextPart<'a>;

    fn next(&mut self) -> Option<TextPart<'a>> {
        if let Some(name) = self.next.take() {
            return Some(if name.is_empty() { TextPart::Text("$") } else { TextPart::Variable(name) });
        }
        if self.rest.is_empty() {
            return None;
        }
        let Some((before, after)) = self.rest.split_once('$') else {
            return Some(TextPart::Text(std::mem::take(&mut self.rest)));
        };
        let is_braced = after.starts_with('{');
        let start = &after[usize::from(is_braced)..];
        let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        // A number is one digit.
        let end = match start.chars().next() {
            Some(first) if first.is_ascii_digit() => 1,
            _ => start.find(|letter| !is_part(letter)).unwrap_or(start.len()),
        };
        let (name, behind) = start.split_at(end);
        self.next = Some(name);
        self.rest = if is_braced { behind.strip_prefix('}').unwrap_or(behind) } else { behind };
        Some(TextPart::Text(before))
    }
}

/// Whether a text has a variable.
pub(super) fn has_any(text: &str) -> bool {
    parts(text).any(|part| matches!(part, TextPart::Variable(_)))
}

impl NginxExchange<'_> {
    /// A text with the values of its variables.
    pub(super) fn filled(&self, text: &str) -> String {
        if !text.contains('$') && text.len() <= MAX_TEXT_BYTES {
            return text.to_owned();
        }
        self.filled_within(text, 0)
    }

    fn filled_within(&self, text: &str, depth: usize) -> String {
        let mut filled = String::with_capacity(text.len());
        for part in parts(text) {
            match part {
                TextPart::Text(text) => filled.push_str(text),
                TextPart::Variable(name) => filled.push_str(&self.value(name, depth)),
            }
            if filled.len() > MAX_TEXT_BYTES {
                break;
            }
        }
        filled
    }

    fn value(&self, name: &str, depth: usize) -> Cow<'_, str> {
        if let Ok(number) = name.parse::<usize>() {
            return self.captures.get(number).map_or("", String::as_str).into();
        }
        if let Some(value) = self.set.get(name) {
            return value.into();
        }
        let map = self.site.config.maps.iter().find(|map| map.name == name);
        if let Some(map) = map.filter(|_| depth < MAX_DEPTH) {
            let source = self.filled_within(&map.source, depth + 1);
            let of_key =
                |wanted: &str| map.entries.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
            let of_pattern =
                || map.patterns.iter().find(|(pattern, _)| pattern.is_match(&source)).map(|(_, value)| value);
            let found = of_key(&source).or_else(of_pattern).or_else(|| of_key("default"));
            return found.map_or(String::new(), |value| self.filled_within(value, depth + 1)).into();
        }
        self.known(name)
    }

    /// A value that may be missing: a dash in the log, where a quote would end it, too.
    fn shown<'v>(&self, value: Option<impl Into<Cow<'v, str>>>) -> Cow<'v, str> {
        let value = value.map(Into::into);
        match (self.logged_at, value) {
            (Some(_), None) => "-".into(),
            (Some(_), Some(value)) if value.contains('"') => value.replace('"', "\\x22").into(),
            (_, value) => value.unwrap_or_default(),
        }
    }

    fn cookie(&self, key: &str) -> Option<&str> {
        let cookies = self.asked.header("cookie").unwrap_or_default();
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    fn known(&self, name: &str) -> Cow<'_, str> {
        let asked = self.asked;
        if let Some(header) = name.strip_prefix("http_") {
            return self.shown(asked.header(&header.replace('_', "-")));
        }
        if let Some(key) = name.strip_prefix("arg_") {
            return self.shown(parameter(&self.args, key));
        }
        if let Some(key) = name.strip_prefix("cookie_") {
            return self.shown(self.cookie(key));
        }
        match name {
            "host" => self.host_name().into(),
            "uri" | "document_uri" => self.path.as_str().into(),
            "request_uri" => asked.target.into(),
            "args" | "query_string" => self.shown(Some(self.args.as_str()).filter(|args| !args.is_empty())),
            "is_args" => if self.args.is_empty() { "" } else { "?" }.into(),
            "remote_addr" | "realip_remote_addr" => asked.client().0.trim_matches(['[', ']']).into(),
            "remote_port" => asked.client().1.into(),
            "scheme" => if self.is_tls() { "https" } else { "http" }.into(),
            "https" => if self.is_tls() { "on" } else { "" }.into(),
            "server_name" => self.host.names.first().map_or("", String::as_str).into(),
            "server_port" => self.port.to_string().into(),
            "server_addr" => asked.address.into(),
            "server_protocol" => "HTTP/1.1".into(),
            "hostname" => asked.host_name.into(),
            "request_method" => asked.method.into(),
            "request" => format!("{} {} HTTP/1.1", asked.method, asked.target).into(),
            "request_body" => crate::byte_text::text_of(asked.body).into(),
            "content_type" => self.shown(asked.header("content-type")),
            "content_length" => self.shown(asked.header("content-length")),
            "document_root" => self.root.as_str().into(),
            "request_filename" => format!("{}{}", self.root, self.path).into(),
            "time_iso8601" => asked.now.replace('Z', "+00:00").into(),
            "nginx_version" => self.site.version.as_str().into(),
            "proxy_host" => self.proxy_host.as_str().into(),
            "proxy_port" => self.proxy_port.as_str().into(),
            "proxy_add_x_forwarded_for" => match asked.header("x-forwarded-for") {
                Some(others) => format!("{others}, {}", self.known("remote_addr")).into(),
                None => self.known("remote_addr"),
            },
            "status" => self.code.to_string().into(),
            "body_bytes_sent" | "bytes_sent" => self.sent.to_string().into(),
            "request_time" | "upstream_response_time" => "0.000".into(),
            "connection" | "connection_requests" => "1".into(),
            "pid" => "1".into(),
            "remote_user" => self.shown(None::<&str>),
            "time_local" => self.logged_at.map_or(String::new(), common_time).into(),
            _ => "".into(),
        }
    }
}
