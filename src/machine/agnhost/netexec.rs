//! agnhost's `netexec`, as far as it asks others, ends itself, or takes files.

use std::time::Duration;

use serde_json::json;

use super::asking::{AskFirst, Backing, MARK};
use crate::requests::{WebAnswer, WebRequest, parameter};
use crate::server_state::ServerState;

/// So often one request dials at most; a larger number is refused.
const MAX_TRIES: usize = 100;
/// `createHTTPClient` waits so long, and `dialUDP` too.
const PATIENCE: u64 = 5;

/// Nothing for a path that is answered at once.
pub(crate) fn answer(
    asked: &WebRequest<'_>,
    state: &mut ServerState,
    backing: Backing<'_>,
) -> Option<Result<WebAnswer, Box<AskFirst>>> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    Some(match path {
        "/dial" => dial(query, backing),
        "/exit" => Ok(exit(query)),
        "/shutdown" => Ok(WebAnswer { exits: Some(0), ..WebAnswer::default() }),
        "/upload" => Ok(upload(asked, state)),
        "/shell" => shell(query, backing),
        _ => return None,
    })
}

fn bad(why: String) -> WebAnswer {
    WebAnswer::text(400, why + "\n")
}

fn dial(query: &str, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let named = |name: &str| parameter(query, name).unwrap_or_default();
    let (host, port, request, protocol) = (named("host"), named("port"), named("request"), named("protocol"));
    let tries = match named("tries").as_str() {
        "" => Some(1),
        tries => tries.parse().ok().filter(|tries| *tries <= MAX_TRIES),
    };
    let Some(tries) = tries else {
        return Ok(bad(format!("tries parameter is invalid. It may be from 0 to {MAX_TRIES}")));
    };
    if request.is_empty() {
        return Ok(bad("request parameter not specified. <nil>".into()));
    }
    let client = match protocol.to_ascii_lowercase().as_str() {
        "" | "http" => format!("curl -s -L --max-time {PATIENCE} \"http://$TO/$REQUEST\""),
        "udp" => format!("printf %s \"$REQUEST\" | nc -u -w {PATIENCE} \"$HOST\" \"$PORT\""),
        other => return Ok(bad(format!("unsupported protocol. {other}"))),
    };
    let script = format!(
        "i=0; while [ $i -lt {tries} ]; do {client}; printf '%s' \"{MARK}$?{MARK}\"; i=$((i+1)); done"
    );
    let to = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let variables = [("TO", to.as_str()), ("REQUEST", &request), ("HOST", &host), ("PORT", &port)];
    let ran = backing.run(&script, &variables)?;
    let said: Vec<&str> = ran.out.split(MARK).collect();
    let mut responses = vec![];
    let mut errors = vec![];
    for said in said.chunks_exact(2) {
        match said[1] {
            "0" if protocol.eq_ignore_ascii_case("udp") && said[0].is_empty() => {
                errors.push(format!("reading from udp connection failed. err:'read udp {to}: i/o timeout'"));
            }
            "0" => responses.push(said[0].to_owned()),
            code => errors.push(dialled(&to, &request, code, &protocol)),
        }
    }
    let mut output = serde_json::Map::new();
    if !responses.is_empty() {
        output.insert("responses".into(), responses.into());
    }
    if !errors.is_empty() {
        output.insert("errors".into(), errors.into());
    }
    Ok(WebAnswer::text(200, serde_json::Value::from(output).to_string()))
}

/// In the words of Go's client, by the code of what asked.
fn dialled(to: &str, request: &str, code: &str, protocol: &str) -> String {
    if protocol.eq_ignore_ascii_case("udp") {
        return format!("reading from udp connection failed. err:'read udp {to}: read: connection refused'");
    }
    let why = match code {
        "6" => format!("dial tcp: lookup {to}: no such host"),
        "7" => format!("dial tcp {to}: connect: connection refused"),
        "28" => "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned(),
        _ => "EOF".to_owned(),
    };
    format!("Get \"http://{to}/{request}\": {why}")
}

/// The process ends, after a while.
fn exit(query: &str) -> WebAnswer {
    let named = |name: &str| parameter(query, name).unwrap_or_default();
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
    let named = |name: &str| parameter(query, name).filter(|command| !command.is_empty());
    let command = named("shellCommand").or_else(|| named("cmd")).unwrap_or_default();
    let ran = backing.run(&command, &[])?;
    let (code, said) = (ran.end.map_or(137, |(_, code)| code), ran.out + &ran.errors);
    let mut output = serde_json::Map::new();
    if !said.is_empty() {
        output.insert("output".into(), said.into());
    }
    if code != 0 {
        output.insert("error".into(), format!("exit status {code}").into());
    }
    Ok(WebAnswer::text(200, serde_json::Value::from(output).to_string()))
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
