//! `ping`, as BusyBox has it.

use std::time::Duration;

use super::resolver::{AddressFamily, resolve_of};
use crate::interpreter::player::{AfterCommand, Player};
use crate::questions::{NetworkAsk, NetworkReply, Question};

/// What it waits between requests, and for the last answer.
const INTERVAL: Duration = Duration::from_secs(1);
const LAST_WAIT: Duration = Duration::from_secs(10);

pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let value = |flag: &str| {
        let at = words.iter().position(|word| word.starts_with(flag))?;
        let own = Some(&words[at][flag.len()..]).filter(|own| !own.is_empty());
        own.or_else(|| words.get(at + 1).copied())?.parse::<u64>().ok()
    };
    let takes_value = |word: &&str| matches!(*word, "-c" | "-W" | "-w" | "-i" | "-s" | "-I");
    let mut before = [""].iter().chain(words.iter());
    let mut names =
        words.iter().filter(|word| !before.next().is_some_and(takes_value) && !word.starts_with('-'));
    let Some(host) = names.next() else {
        player.fail("BusyBox v1.37.0 multi-call binary.\n\nUsage: ping [OPTIONS] HOST\n");
        return Ok(());
    };
    let Some(address) = resolve_of(player, host, AddressFamily::of(words))? else {
        player.fail(&format!("ping: bad address '{host}'\n"));
        return Ok(());
    };
    player.say(&format!("PING {host} ({address}): 56 data bytes\n"));
    let (count, within) = (value("-c"), value("-W").or(value("-w")).map_or(LAST_WAIT, Duration::from_secs));
    let mut sent = 0;
    let mut received = 0;
    while count.is_none_or(|count| sent < count) {
        if sent > 0 {
            wait(player.pause(INTERVAL))?;
        }
        let reply = player.ask(Question { what: NetworkAsk::Ping(address), within })?;
        if reply == NetworkReply::Echo {
            player.say(&format!("64 bytes from {address}: seq={sent} ttl=64 time=0.052 ms\n"));
            received += 1;
        }
        sent += 1;
    }
    let lost = (sent - received) * 100 / sent.max(1);
    player.say(&format!(
        "\n--- {host} ping statistics ---\n{sent} packets transmitted, {received} packets received, {lost}% packet loss\n"
    ));
    if received > 0 {
        player.say("round-trip min/avg/max = 0.052/0.052/0.052 ms\n");
    }
    player.status = i32::from(received == 0);
    Ok(())
}

fn wait(flow: AfterCommand) -> Result<(), AfterCommand> {
    if flow == AfterCommand::Go { Ok(()) } else { Err(flow) }
}
