//! A request that a server passes on to whoever is behind it, and what that one says.

use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS};

use crate::agnhost::asking::{AskFirst, Backing};
use crate::byte_text;
use crate::requests::{WebAnswer, canonical};

/// Headers that are of a connection, or that whoever passes an answer on says itself.
const NOT_PASSED: &[&str] =
    &["connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "x-pad"];

/// What of a decoded path cannot stand in the request of it that is passed on.
pub(crate) const NOT_IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`');

/// What is asked.
pub(crate) struct PassedRequest<'a> {
    /// Of whom, and for what.
    pub(crate) url: &'a str,
    /// `GET`
    pub(crate) method: &'a str,
    /// All that is said but what is of the connection.
    pub(crate) headers: Vec<(String, String)>,
    /// What is sent.
    pub(crate) body: &'a [u8],
    /// How long it waits.
    pub(crate) within: Duration,
}

/// What is answered, or the code into which its client ran.
pub(crate) type PassedAnswer = Result<WebAnswer, i32>;

impl PassedRequest<'_> {
    /// Asks, as far as the answers lead.
    ///
    /// # Errors
    /// What it asks next.
    pub(crate) fn send(mut self, backing: Backing<'_>) -> Result<PassedAnswer, Box<AskFirst>> {
        let has_type = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        self.headers.push(("Connection".to_owned(), "close".to_owned()));
        let mut lines: Vec<String> =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        // Its client would say of a body that it is a form.
        lines.extend((!has_type).then(|| "Content-Type:".to_owned()));
        let names: Vec<String> = (0..lines.len()).map(|at| format!("PASSED_HEADER_{at}")).collect();
        let flags: String = names.iter().map(|name| format!(" -H \"${name}\"")).collect();
        let body = byte_text::text_of(self.body);
        // Whatever is of the request stands in variables: no letter of it is read as a command.
        let how = if self.method == "HEAD" { "-I" } else { "-i -X \"$PASSED_METHOD\"" };
        let data = if body.is_empty() { "" } else { " --data-raw \"$PASSED_BODY\"" };
        let seconds = self.within.as_secs();
        let script = format!("curl -s -k {how} --max-time {seconds}{flags}{data} \"$PASSED_URL\"");
        let mut variables: Vec<(&str, &str)> =
            vec![("PASSED_URL", self.url), ("PASSED_BODY", &body), ("PASSED_METHOD", self.method)];
        variables.extend(names.iter().map(String::as_str).zip(lines.iter().map(String::as_str)));
        let ran = backing.run(&script, &variables)?;
        Ok(match ran.end {
            Some((_, 0)) => read(&ran.out).ok_or(52),
            end => Err(end.map_or(28, |(_, code)| code)),
        })
    }
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
