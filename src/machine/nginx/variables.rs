//! nginx's variables, and its texts with variables in them.

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

/// `$name`, `${name}`, `$1` among the text.
fn parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        parts.push(TextPart::Text(before));
        let is_braced = after.starts_with('{');
        let start = &after[usize::from(is_braced)..];
        let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        // A number is one digit.
        let end = match start.chars().next() {
            Some(first) if first.is_ascii_digit() => 1,
            _ => start.find(|letter| !is_part(letter)).unwrap_or(start.len()),
        };
        let (name, behind) = start.split_at(end);
        parts.push(if name.is_empty() { TextPart::Text("$") } else { TextPart::Variable(name) });
        rest = if is_braced { behind.strip_prefix('}').unwrap_or(behind) } else { behind };
    }
    parts.push(TextPart::Text(rest));
    parts
}

/// Whether a text has a variable.
pub(super) fn has_any(text: &str) -> bool {
    parts(text).iter().any(|part| matches!(part, TextPart::Variable(_)))
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
        let mut filled = String::new();
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

    fn value(&self, name: &str, depth: usize) -> String {
        if let Ok(number) = name.parse::<usize>() {
            return self.captures.get(number).cloned().unwrap_or_default();
        }
        if let Some(value) = self.set.get(name) {
            return value.clone();
        }
        let map = self.site.config.maps.iter().find(|map| map.name == name);
        if let Some(map) = map.filter(|_| depth < MAX_DEPTH) {
            let source = self.filled_within(&map.source, depth + 1);
            let of_key =
                |wanted: &str| map.entries.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
            let of_pattern =
                || map.patterns.iter().find(|(pattern, _)| pattern.is_match(&source)).map(|(_, value)| value);
            let found = of_key(&source).or_else(of_pattern).or_else(|| of_key("default"));
            return found.map_or(String::new(), |value| self.filled_within(value, depth + 1));
        }
        self.known(name)
    }

    /// A value that may be missing: a dash in the log, where a quote would end it, too.
    fn shown(&self, value: Option<&str>) -> String {
        match self.logged_at {
            Some(_) => value.unwrap_or("-").replace('"', "\\x22"),
            None => value.unwrap_or_default().to_owned(),
        }
    }

    fn known(&self, name: &str) -> String {
        let asked = self.asked;
        let from = || asked.from.rsplit_once(':').unwrap_or((asked.from, ""));
        if let Some(header) = name.strip_prefix("http_") {
            return self.shown(asked.header(&header.replace('_', "-")));
        }
        if let Some(key) = name.strip_prefix("arg_") {
            return self.shown(parameter(&self.args, key).as_deref());
        }
        if let Some(key) = name.strip_prefix("cookie_") {
            let cookies = asked.header("cookie").unwrap_or_default();
            let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
            return self.shown(pairs.find(|(own, _)| *own == key).map(|(_, value)| value));
        }
        match name {
            "host" => self.host_name(),
            "uri" | "document_uri" => self.path.clone(),
            "request_uri" => asked.target.to_owned(),
            "args" | "query_string" => self.shown(Some(self.args.as_str()).filter(|args| !args.is_empty())),
            "is_args" => if self.args.is_empty() { "" } else { "?" }.to_owned(),
            "remote_addr" | "realip_remote_addr" => from().0.trim_matches(['[', ']']).to_owned(),
            "remote_port" => from().1.to_owned(),
            "scheme" => if self.is_tls() { "https" } else { "http" }.to_owned(),
            "https" => if self.is_tls() { "on" } else { "" }.to_owned(),
            "server_name" => self.host.names.first().cloned().unwrap_or_default(),
            "server_port" => self.port.to_string(),
            "server_addr" => asked.address.to_owned(),
            "server_protocol" => "HTTP/1.1".to_owned(),
            "hostname" => asked.host_name.to_owned(),
            "request_method" => asked.method.to_owned(),
            "request" => format!("{} {} HTTP/1.1", asked.method, asked.target),
            "request_body" => crate::byte_text::text_of(asked.body),
            "content_type" => self.shown(asked.header("content-type")),
            "content_length" => self.shown(asked.header("content-length")),
            "document_root" => self.root.clone(),
            "request_filename" => format!("{}{}", self.root, self.path),
            "time_iso8601" => asked.now.replace('Z', "+00:00"),
            "nginx_version" => self.site.version.clone(),
            "proxy_host" => self.proxy_host.clone(),
            "proxy_port" => self.proxy_port.clone(),
            "proxy_add_x_forwarded_for" => match asked.header("x-forwarded-for") {
                Some(others) => format!("{others}, {}", self.known("remote_addr")),
                None => self.known("remote_addr"),
            },
            "status" => self.code.to_string(),
            "body_bytes_sent" | "bytes_sent" => self.sent.to_string(),
            "request_time" | "upstream_response_time" => "0.000".to_owned(),
            "connection" | "connection_requests" => "1".to_owned(),
            "pid" => "1".to_owned(),
            "remote_user" => self.shown(None),
            "time_local" => self.logged_at.map_or(String::new(), common_time),
            _ => String::new(),
        }
    }
}
