//! Programs of agnhost that ask others.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::flags::flag;
use super::{in_cluster, klog_line};
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::resolve;
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question};

/// `connect HOST:PORT`: whether anybody is there, and if not, in one word why.
pub(super) fn connect(player: &mut Player<'_>, arguments: &[String]) -> Result<(), AfterCommand> {
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
    let within = flag(arguments, "timeout").and_then(golang::duration::parse).filter(|time| !time.is_zero());
    let is_udp = match flag(arguments, "protocol") {
        None | Some("" | "tcp") => false,
        Some("udp") => true,
        Some("sctp") => {
            // Nobody speaks it here.
            wait(player, within.unwrap_or_default())?;
            player.fail("TIMEOUT\n");
            return Ok(());
        }
        Some(other) => {
            player.fail(&format!("Unsupported protocol\n{other}"));
            return Ok(());
        }
    };
    let what = if is_udp {
        let said = flag(arguments, "udp-data").unwrap_or("hostname");
        NetworkAsk::Udp { to, send: format!("{said}\n").into_bytes() }
    } else {
        NetworkAsk::Tcp { to, send: vec![], reads: false }
    };
    let why = match player.ask(Question { what, within: within.unwrap_or(CONNECT_TIMEOUT) })? {
        NetworkReply::Refused if is_udp => format!("REFUSED: read udp {to}: read: connection refused"),
        NetworkReply::TimedOut(_) if is_udp => format!("TIMEOUT: read udp {to}: i/o timeout"),
        NetworkReply::Unreachable if is_udp => format!("UNKNOWN: write udp {to}: write: no route to host"),
        NetworkReply::Refused => "REFUSED".to_owned(),
        NetworkReply::TimedOut(_) => "TIMEOUT".to_owned(),
        NetworkReply::Unreachable => format!("OTHER: dial tcp {to}: connect: no route to host"),
        _ => return Ok(()),
    };
    player.fail(&format!("{why}\n"));
    Ok(())
}

fn wait(player: &mut Player<'_>, time: Duration) -> Result<(), AfterCommand> {
    match player.pause(time) {
        AfterCommand::Go => Ok(()),
        flow => Err(flow),
    }
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
pub(super) fn poll(player: &mut Player<'_>, arguments: &[String]) -> Result<(), AfterCommand> {
    klog_line::say_at(player, ('I', "main.go:61"), "started");
    let seconds = flag(arguments, "poll-interval").and_then(|seconds| seconds.parse().ok()).unwrap_or(30);
    loop {
        wait(player, Duration::from_secs(seconds))?;
        klog_line::say_at(player, ('I', "main.go:79"), "calling /healthz");
        let header = in_cluster::authorization(player);
        let (Some(header), Some(question)) = (header, in_cluster::question(player, "/healthz")) else {
            return Err(klog_line::fatal(player, format!("err: {}", in_cluster::WHY_NONE)));
        };
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("salt|{header}")));
        klog_line::say_at(player, ('I', "main.go:96"), format!("authz_header={hash}"));
        let reply = player.ask(question)?;
        if !matches!(&reply, NetworkReply::Web(web) if web.code == 200) {
            klog_line::say_at(player, ('E', "main.go:82"), "status=failed");
            let why = match reply {
                NetworkReply::Web(web) => format!("{} {}", web.code, String::from_utf8_lossy(&web.body)),
                _ => "connection refused".to_owned(),
            };
            klog_line::say_at(player, ('E', "main.go:83"), format!("error checking /healthz: {why}"));
        }
    }
}
