//! agnhost's `netexec`: it says who asks whom, asks others, runs a shell, and ends when it is told.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::asking::{AskFirst, Backing, MARK};
use crate::requests::{WebAnswer, WebRequest, canonical, json_text, parameter};
use crate::server_state::ServerState;

/// So often one request dials at most; a larger number is refused.
const MAX_TRIES: usize = 100;
/// `createHTTPClient` waits so long, and `dialUDP` too.
const PATIENCE: u64 = 5;
/// How curl ends that finds no such host.
const NO_SUCH_HOST: &str = "6";

/// Nothing for what is answered as its target alone says.
pub(crate) fn answer(
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    backing: Backing<'_>,
    port: i64,
) -> Option<Result<WebAnswer, Box<AskFirst>>> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    Some(match path {
        "/dial" => dial(query, backing),
        "/exit" => Ok(exit(query)),
        "/shutdown" => Ok(WebAnswer { exits: Some(0), ..WebAnswer::default() }),
        "/upload" => Ok(upload(asked, state)),
        "/shell" => shell(query, backing),
        "/redirect" => Ok(code(query).err()?),
        _ => Ok(page(asked, port)),
    })
}

/// The request that is answered instead of any other (`--http-override`).
pub(crate) fn overridden<'a>(asked: &WebRequest<'a>, target: &'a str) -> WebRequest<'a> {
    WebRequest { method: "GET", target, headers: vec![], from: "", body: b"", ..asked.clone() }
}

/// What needs neither a shell nor a network.
pub(crate) fn page(asked: &WebRequest<'_>, port: i64) -> WebAnswer {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    let body = match path {
        "/hostname" | "/hostName" => asked.host_name.to_owned(),
        "/clientip" => asked.from.to_owned(),
        "/serverport" => port.to_string(),
        "/echo" => {
            return match code(query) {
                Ok(code) => WebAnswer::text(code.unwrap_or(200), named(query, "msg")),
                Err(told) => told,
            };
        }
        "/header" => header(asked, &named(query, "key")),
        "/healthz" => return WebAnswer { code: 200, ..WebAnswer::default() },
        "/readyz" => "ok".to_owned(),
        _ => format!("NOW: {}", asked.now),
    };
    WebAnswer::text(200, body)
}

fn named(query: &str, name: &str) -> String {
    parameter(query, name).unwrap_or_default()
}

/// The code that is asked for, if one is; what is told of one that is none.
fn code(query: &str) -> Result<Option<u16>, WebAnswer> {
    let text = named(query, "code");
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || format!("argument 'code' must be an integer or empty, got {text:?}\n");
    text.parse().map(Some).map_err(|_| WebAnswer::text(200, wrong()))
}

/// One header, or all of them.
fn header(asked: &WebRequest<'_>, key: &str) -> String {
    if !key.is_empty() {
        return asked.header(&key.to_ascii_lowercase()).unwrap_or_default().to_owned();
    }
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    // The host is none to Go.
    for (name, value) in asked.headers.iter().filter(|(name, _)| *name != "host") {
        all.entry(canonical(name)).or_default().push(value);
    }
    json_text(&json!(all))
}

/// What it writes into its log of a request.
pub(crate) fn logged(asked: &WebRequest<'_>) -> String {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    let told = |names: &[&str]| {
        let pairs = names.iter().map(|name| format!("{name}={}", named(query, name)));
        format!("GET {path}?{}", pairs.collect::<Vec<_>>().join("&"))
    };
    match path {
        "/echo" => told(&["msg", "code"]),
        "/exit" => told(&["code", "timeout", "wait"]),
        "/dial" => told(&["host", "protocol", "port", "request", "tries"]),
        "/header" if !named(query, "key").is_empty() => told(&["key"]),
        "/shell" => format!("GET /shell?cmd={}", command(query)),
        "/redirect" => {
            let (location, code) = (named(query, "location"), named(query, "code"));
            format!("{} /redirect?msg={location}&code={code}", asked.method)
        }
        "/clientip" | "/serverport" | "/header" | "/healthz" | "/readyz" | "/hostname" | "/hostName"
        | "/shutdown" | "/upload" => format!("GET {path}"),
        _ => "GET /".to_owned(),
    }
}

/// What comes back of a datagram; nothing to what it does not know.
pub(crate) fn datagram(said: &str, (port, from, host_name): (i64, &str, &str)) -> Option<String> {
    let said = said.trim().to_lowercase();
    match said.as_str() {
        "hostname" => Some(host_name.to_owned()),
        "clientip" => Some(from.to_owned()),
        "serverport" => Some(port.to_string()),
        said => said.strip_prefix("echo ").map(str::to_owned),
    }
}

fn dial(query: &str, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let named = |name: &str| named(query, name);
    let (host, port, request, protocol) = (named("host"), named("port"), named("request"), named("protocol"));
    let tries = match named("tries").as_str() {
        "" => Ok(1),
        tries => tries.parse::<usize>().map_err(|_| tries.to_owned()),
    };
    let tries = match tries {
        Ok(tries) if tries <= MAX_TRIES => tries,
        Ok(_) => return Ok(bad(format!("tries parameter is invalid. It may be from 0 to {MAX_TRIES}"))),
        Err(tries) => {
            let why = format!("strconv.Atoi: parsing {tries:?}: invalid syntax");
            return Ok(bad(format!("tries parameter is invalid. {why}")));
        }
    };
    if request.is_empty() {
        return Ok(bad("request parameter not specified. <nil>".into()));
    }
    let client = match protocol.to_ascii_lowercase().as_str() {
        "" | "http" => format!("curl -s -L --max-time {PATIENCE} \"http://$TO/$REQUEST\""),
        "udp" => format!("printf %s \"$REQUEST\" | nc -u -w {PATIENCE} \"$HOST\" \"$PORT\""),
        _ => return Ok(bad(format!("unsupported protocol. {protocol}"))),
    };
    let script = format!(
        "i=0; while [ $i -lt {tries} ]; do {client}; printf '%s' \"{MARK}$?{MARK}\"; i=$((i+1)); done"
    );
    let to = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let variables = [("TO", to.as_str()), ("REQUEST", &request), ("HOST", &host), ("PORT", &port)];
    let ran = backing.run(&script, &variables)?;
    let said: Vec<&str> = ran.out.split(MARK).collect();
    if said.get(1) == Some(&NO_SUCH_HOST) {
        return Ok(bad(format!("host and/or port param are invalid. lookup {host}: no such host")));
    }
    Ok(dialled_all(&said, (&to, &request), protocol.eq_ignore_ascii_case("udp")))
}

fn bad(why: String) -> WebAnswer {
    WebAnswer::error(400, why)
}

/// What was said to each try, and how that ended.
fn dialled_all(said: &[&str], (to, request): (&str, &str), is_udp: bool) -> WebAnswer {
    let mut responses = vec![];
    let mut errors = vec![];
    let mut last = "";
    for said in said.chunks_exact(2) {
        last = "";
        match said[1] {
            "0" if is_udp && said[0].is_empty() => {
                errors.push(format!("reading from udp connection failed. err:'read udp {to}: i/o timeout'"));
            }
            "0" => {
                last = said[0];
                responses.push(last.to_owned());
            }
            code => errors.push(dialled(to, request, code, is_udp)),
        }
    }
    let mut output = serde_json::Map::new();
    // The real one shows what was answered only if the last one answered anything.
    if !last.is_empty() {
        output.insert("responses".into(), responses.into());
    }
    if !errors.is_empty() {
        output.insert("errors".into(), errors.into());
    }
    WebAnswer::text(200, json_text(&Value::from(output)))
}

/// In the words of Go's client, by the code of what asked.
fn dialled(to: &str, request: &str, code: &str, is_udp: bool) -> String {
    if is_udp {
        return format!("reading from udp connection failed. err:'read udp {to}: read: connection refused'");
    }
    let why = match code {
        "7" => format!("dial tcp {to}: connect: connection refused"),
        "28" => "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned(),
        _ => "EOF".to_owned(),
    };
    format!("Get \"http://{to}/{request}\": {why}")
}

/// The process ends, after a while.
fn exit(query: &str) -> WebAnswer {
    let named = |name: &str| named(query, name);
    let duration = |name: &str| match named(name).as_str() {
        "" => Ok(Duration::ZERO),
        text => golang::duration::parse(text).ok_or_else(|| {
            format!("argument '{name}' must be a valid golang duration or empty, got {text:?}\n")
        }),
    };
    let code = match named("code").as_str() {
        "" => Ok(0),
        text => text
            .parse()
            .map_err(|_| format!("argument 'code' must be an integer [0-127] or empty, got {text:?}\n")),
    };
    let read = duration("timeout").and_then(|timeout| Ok((timeout, duration("wait")?, code?)));
    match read {
        Ok((_, delay, code)) => WebAnswer { exits: Some(code), delay, ..WebAnswer::default() },
        Err(why) => WebAnswer::text(200, why),
    }
}

/// What a shell beside the server says.
fn shell(query: &str, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let ran = backing.run(&command(query), &[])?;
    let (code, said) = (ran.end.map_or(137, |(_, code)| code), ran.out + &ran.errors);
    let mut output = serde_json::Map::new();
    if !said.is_empty() {
        output.insert("output".into(), said.into());
    }
    if code != 0 {
        output.insert("error".into(), format!("exit status {code}").into());
    }
    Ok(WebAnswer::text(200, json_text(&Value::from(output))))
}

/// What `/shell` runs.
fn command(query: &str) -> String {
    let command = named(query, "shellCommand");
    if command.is_empty() { named(query, "cmd") } else { command }
}

/// A file that is sent as a form.
fn upload(asked: &WebRequest<'_>, state: &mut ServerState) -> WebAnswer {
    let marked = String::from_utf8_lossy(asked.body);
    let is_form = asked.header("content-type").is_some_and(|kind| kind.starts_with("multipart/form-data"));
    if !is_form || !marked.contains("name=\"file\"") {
        return WebAnswer::text(200, json!({"error": "Unable to upload file."}).to_string());
    }
    state.uploads += 1;
    WebAnswer::text(201, json!({"output": format!("/uploads/upload{}", state.uploads)}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_log_names_what_was_asked() {
        for (target, wanted) in [
            ("/echo?code=418&msg=a%20b", "GET /echo?msg=a b&code=418"),
            ("/dial?host=h&port=1&request=x", "GET /dial?host=h&protocol=&port=1&request=x&tries="),
            ("/shell?cmd=ls", "GET /shell?cmd=ls"),
            ("/header?key=a", "GET /header?key=a"),
            ("/header", "GET /header"),
            ("/redirect?location=/x", "PUT /redirect?msg=/x&code="),
            ("/nowhere?a=b", "GET /"),
        ] {
            let asked = WebRequest { method: "PUT", target, ..WebRequest::default() };
            assert_eq!(logged(&asked), wanted);
        }
    }

    #[test]
    fn datagrams_are_commands() {
        let said = |said: &str| datagram(said, (81, "10.0.0.9:4000", "web-0"));
        let wanted = |text: &str| Some(text.to_owned());
        assert_eq!(said("HostName\n"), wanted("web-0"));
        assert_eq!(said("Echo A B"), wanted("a b"));
        assert_eq!((said("clientip"), said("serverport")), (wanted("10.0.0.9:4000"), wanted("81")));
        assert_eq!((said("echo"), said("sing")), (None, None));
    }

    #[test]
    fn what_was_answered_is_told_when_the_last_one_answered() {
        let dialled = |said: &[&str]| dialled_all(said, ("a:1", "x"), false).body;
        assert_eq!(dialled(&["one", "0", "two", "0", ""]), r#"{"responses":["one","two"]}"#);
        let refused = r#"Get \"http://a:1/x\": dial tcp a:1: connect: connection refused"#;
        assert_eq!(dialled(&["one", "0", "", "7", ""]), format!("{{\"errors\":[\"{refused}\"]}}"));
        let both = format!("{{\"errors\":[\"{refused}\"],\"responses\":[\"one\"]}}");
        assert_eq!(dialled(&["", "7", "one", "0", ""]), both);
    }
}
