//! Programs of agnhost that ask others.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::flags::flag;
use super::klog_line;
use crate::interpreter::player::{Flow, Player};
use crate::programs::resolve;
use crate::questions::{CONNECT_TIMEOUT, HttpQuestion, NetworkAsk, NetworkReply, Question, TlsTrust};

/// Where a pod has its own account's token.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// `connect HOST:PORT`: whether anybody is there, and if not, in one word why.
pub(super) fn connect(player: &mut Player<'_>, arguments: &[String]) -> Result<(), Flow> {
    let place = place(arguments);
    let Some((host, port)) = place.and_then(|place| place.rsplit_once(':')) else {
        let place = place.unwrap_or_default();
        player.fail(&format!("UNKNOWN: address {place}: missing port in address\n"));
        return Ok(());
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(port) = port.parse() else {
        player.fail(&format!("DNS: lookup tcp/{port}: unknown port\n"));
        return Ok(());
    };
    let Some(address) = resolve(player, host)? else {
        player.fail(&format!("DNS: lookup {host}: no such host\n"));
        return Ok(());
    };
    let to = SocketAddr::new(address, port);
    let is_udp = flag(arguments, "protocol") == Some("udp");
    let what = if is_udp {
        let said = flag(arguments, "udp-data").unwrap_or("hostname");
        NetworkAsk::Udp { to, send: format!("{said}\n").into_bytes() }
    } else {
        NetworkAsk::Tcp { to, send: vec![], reads: false }
    };
    let within = flag(arguments, "timeout").and_then(golang::duration::parse).filter(|time| !time.is_zero());
    let why = match player.ask(Question { what, within: within.unwrap_or(CONNECT_TIMEOUT) })? {
        NetworkReply::Refused => "REFUSED",
        NetworkReply::TimedOut(_) => "TIMEOUT",
        NetworkReply::Unreachable => "OTHER: connect: no route to host",
        _ => return Ok(()),
    };
    player.fail(&format!("{why}\n"));
    Ok(())
}

/// What is no flag, nor a flag's value.
fn place(arguments: &[String]) -> Option<&str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some(name) if !name.contains('=') => {
                words.next();
            }
            Some(_) => {}
            None => return Some(word),
        }
    }
    None
}

/// `inclusterclient`: asks the apiserver for its health, with the token that its volume holds then.
pub(super) fn poll(player: &mut Player<'_>, arguments: &[String]) -> Result<(), Flow> {
    say(player, "started");
    let seconds = flag(arguments, "poll-interval").and_then(|seconds| seconds.parse().ok()).unwrap_or(30);
    loop {
        match player.pause(Duration::from_secs(seconds)) {
            Flow::Go => {}
            flow => return Err(flow),
        }
        say(player, "calling /healthz");
        let Some(question) = healthz(player) else {
            player.fail("err: unable to load in-cluster configuration\n");
            return Err(Flow::Exit(1));
        };
        let reply = player.ask(question)?;
        if !matches!(&reply, NetworkReply::Web(web) if web.code == 200) {
            say(player, "status=failed");
            let why = match reply {
                NetworkReply::Web(web) => format!("{} {}", web.code, String::from_utf8_lossy(&web.body)),
                _ => "connection refused".to_owned(),
            };
            say(player, &format!("error checking /healthz: {why}"));
        }
    }
}

/// Nothing where there is no account, or no apiserver.
fn healthz(player: &mut Player<'_>) -> Option<Question> {
    let read = |name: &str| player.file(&format!("{ACCOUNT}/{name}")).map(|file| file.text());
    let (token, authorities) = (read("token")?, read("ca.crt")?);
    let host = player.variables.get("KUBERNETES_SERVICE_HOST")?.parse().ok()?;
    let port = player.variables.get("KUBERNETES_SERVICE_PORT")?.parse().ok()?;
    let header = format!("Bearer {}", token.trim());
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("salt|{header}")));
    say(player, &format!("authz_header={hash}"));
    let to = SocketAddr::new(host, port);
    let http = HttpQuestion {
        to: Some(to),
        method: "GET".into(),
        target: "/healthz".into(),
        headers: vec![("Host".into(), to.to_string()), ("Authorization".into(), header)],
        body: vec![],
        tls: Some(TlsTrust { server_name: host.to_string(), everybody: false, authorities }),
    };
    Some(Question { what: NetworkAsk::Http(Box::new(http)), within: CONNECT_TIMEOUT })
}

fn say(player: &mut Player<'_>, text: &str) {
    let line = klog_line::of(text.to_owned(), player.now());
    player.say(&(line + "\n"));
}
