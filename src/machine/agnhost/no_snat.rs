//! agnhost's `no-snat-test` and the proxy in front of it: whether others see a pod by its own address.

use std::net::SocketAddr;

use super::asking::{AskFirst, Backing, MARK};
use crate::requests::{WebAnswer, WebRequest, parameter};

/// So many others does one request ask at most; one that names more is refused.
const MAX_ASKED: usize = 100;
/// How long another one is asked.
const SECONDS: u64 = 30;

/// `/whoami`, and `/checknosnat?ips=HOST:PORT,...`, which asks that of others.
pub(crate) fn answer(asked: &WebRequest<'_>, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    match path {
        "/whoami" => Ok(WebAnswer::text(200, asked.from)),
        "/checknosnat" => check(&parameter(query, "ips").unwrap_or_default(), asked, backing),
        _ => Ok(not_found()),
    }
}

fn check(others: &str, asked: &WebRequest<'_>, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let others: Vec<&str> = others.split(',').collect();
    if others.len() > MAX_ASKED {
        return Ok(WebAnswer::text(400, format!("ips may be {MAX_ASKED} at most\n")));
    }
    let node = backing.around.and_then(|around| around.variables.get("NODE_IP")).map_or("", String::as_str);
    let urls: Vec<String> = others.iter().map(|other| format!("http://{other}/whoami")).collect();
    let mut errors = vec![];
    for ((url, other), (code, said)) in urls.iter().zip(others).zip(get_all(&urls, backing)?) {
        let from = said.trim_end().parse::<SocketAddr>();
        let seen = from.map_or(said, |from| from.ip().to_string());
        if code != 0 {
            errors.push(unreached(url, other, code));
        } else if seen == node && seen != asked.address {
            let own = asked.address;
            errors.push(format!("Returned ip {seen:?} != my Pod ip {own:?}, == my Node ip {node:?} - SNAT"));
        } else if seen != asked.address {
            errors.push(format!(
                "Returned ip {seen:?} != my Pod ip {:?} or my Node ip {node:?} - SNAT to unexpected ip (possible \
                 SNAT through unexpected interface on the way into another node)",
                asked.address
            ));
        }
    }
    let code = if errors.is_empty() { 200 } else { 500 };
    Ok(WebAnswer::text(code, errors.join(", ")))
}

/// `/checknosnat?target=HOST:PORT&ips=...`: what that one says, with its code.
pub(crate) fn pass_on(asked: &WebRequest<'_>, backing: Backing<'_>) -> Result<WebAnswer, Box<AskFirst>> {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    if path != "/checknosnat" {
        return Ok(not_found());
    }
    let named = |name: &str| parameter(query, name).unwrap_or_default();
    let target = named("target");
    let url = format!("http://{target}/checknosnat?ips={}", named("ips"));
    let (code, said) = get_with_code(&url, backing)?;
    let (body, status) = said.rsplit_once('\n').unwrap_or(("", &said));
    Ok(match (code, status.parse()) {
        (0, Ok(status)) => WebAnswer::text(status, body),
        _ => {
            let why = unreached(&url, &target, code);
            WebAnswer::text(500, format!("error querying {url:?}, err: {why}"))
        }
    })
}

fn not_found() -> WebAnswer {
    WebAnswer::not_found()
}

/// How a client of each ended, and what it was answered. One script asks all: what it asks is numbered.
fn get_all(urls: &[String], backing: Backing<'_>) -> Result<Vec<(i32, String)>, Box<AskFirst>> {
    let names: Vec<String> = (0..urls.len()).map(|at| format!("URL{at}")).collect();
    let one =
        |name: &String| format!("curl -s --max-time {SECONDS} \"${name}\"; printf '%s' \"{MARK}$?{MARK}\"; ");
    let script: String = names.iter().map(one).collect();
    let variables: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(urls.iter().map(String::as_str)).collect();
    let ran = backing.run(&script, &variables)?;
    let said: Vec<&str> = ran.out.split(MARK).collect();
    Ok(said.chunks_exact(2).map(|said| (said[1].parse().unwrap_or(137), said[0].to_owned())).collect())
}

/// How a client ended, and what it was answered, with the code of that in the last line.
fn get_with_code(url: &str, backing: Backing<'_>) -> Result<(i32, String), Box<AskFirst>> {
    let script = format!("curl -s --max-time {SECONDS} -w '\\n%{{http_code}}' \"$URL\"");
    let ran = backing.run(&script, &[("URL", url)])?;
    Ok((ran.end.map_or(137, |(_, code)| code), ran.out))
}

/// In the words of Go's client, by the code of what asked.
fn unreached(url: &str, to: &str, code: i32) -> String {
    let why = match code {
        6 => format!("dial tcp: lookup {to}: no such host"),
        7 => format!("dial tcp {to}: connect: connection refused"),
        28 => format!("dial tcp {to}: i/o timeout"),
        _ => "EOF".to_owned(),
    };
    format!("Get {url:?}: {why}")
}
