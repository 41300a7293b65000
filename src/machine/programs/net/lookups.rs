//! Programs that look up names: `nslookup` in BusyBox' form, `host` and `getent`.

use std::net::IpAddr;

use super::resolver::{AddressFamily, Resolved, Resolver, resolve, resolve_named};
use crate::dns::{self, DnsAnswerRecord};
use crate::interpreter::player::{AfterCommand, Player};

pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> Result<(), AfterCommand> {
    match name {
        "nslookup" => nslookup(player, words),
        "host" => host(player, words),
        _ => getent(player, words),
    }
}

/// The name in which an address is looked up.
pub(super) fn reversed(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
        }
        IpAddr::V6(address) => {
            let digits: Vec<char> = address
                .octets()
                .iter()
                .flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>())
                .collect();
            digits.iter().rev().flat_map(|digit| [*digit, '.']).collect::<String>() + "ip6.arpa."
        }
    }
}

/// A name and the type of records that are looked for: an address is looked for by its name.
fn subject(name: &str, kind: Option<u16>) -> (String, u16) {
    match name.parse() {
        Ok(address) => (reversed(address), 12),
        Err(_) => (name.to_owned(), kind.unwrap_or(1)),
    }
}

/// The first name of the search list that is there counts, as in the `nslookup` of BIND; of a name whose type
/// of records is not said, addresses of both families are looked for.
fn nslookup(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let (flags, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let kind = flags.iter().find_map(|flag| flag.split_once('=')).and_then(|(_, kind)| dns::type_of(kind));
    let Some(name) = names.first() else {
        player.fail("Usage: nslookup [-type=QUERY_TYPE] HOST [DNS_SERVER]\n");
        return Ok(());
    };
    let mut resolver = Resolver::of(player);
    if let Some(server) = names.get(1) {
        resolver.server = resolve(player, server)?;
    }
    let wants_both = kind.is_none() && name.parse::<IpAddr>().is_err();
    let (subject, kind) = subject(name, kind);
    let mut found = resolver.search(player, &subject, kind)?;
    if wants_both {
        add_ipv6(player, &resolver, &mut found)?;
    }
    let (Resolved::Answer(full, answer), Some(server)) = (found, resolver.server) else {
        player.say(";; connection timed out; no servers could be reached\n\n");
        player.status = 1;
        return Ok(());
    };
    player.say(&format!("Server:\t\t{server}\nAddress:\t{server}:53\n\n"));
    if answer.code != 0 {
        player.say(&format!("** server can't find {name}: {}\n\n", answer.status()));
        player.status = 1;
        return Ok(());
    }
    if answer.records.is_empty() {
        player.say(&format!("*** Can't find {full}: No answer\n\n"));
        player.status = 1;
    }
    let said: String = answer.records.iter().map(looked_up).collect();
    player.say(&format!("{said}\n"));
    Ok(())
}

/// What is found of a name has addresses of IPv6, too, if there are any. A name that another name stands for
/// is said once.
fn add_ipv6(player: &mut Player<'_>, resolver: &Resolver, found: &mut Resolved) -> Result<(), AfterCommand> {
    let Resolved::Answer(full, answer) = found else { return Ok(()) };
    if answer.code != 0 {
        return Ok(());
    }
    let kind = dns::type_of("AAAA").unwrap_or_default();
    let further = resolver.ask(player, full, kind)?.map(|further| further.records).unwrap_or_default();
    answer.records.extend(further.into_iter().filter(|record| record.kind == "AAAA"));
    Ok(())
}

fn looked_up(record: &DnsAnswerRecord) -> String {
    let DnsAnswerRecord { name, kind, data, .. } = record;
    match *kind {
        "A" | "AAAA" => format!("Name:\t{name}\nAddress: {data}\n"),
        "PTR" => format!("{name}\tname = {}\n", data.trim_end_matches('.')),
        "CNAME" => format!("{name}\tcanonical name = {}\n", data.trim_end_matches('.')),
        "SRV" => format!("{name}\tservice = {data}\n"),
        kind => format!("{name}\t{} = {data}\n", kind.to_lowercase()),
    }
}

fn host(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let at = words.iter().position(|word| *word == "-t");
    let kind = at.and_then(|at| words.get(at + 1)).and_then(|kind| dns::type_of(kind));
    let names = words
        .iter()
        .enumerate()
        .filter(|(own, word)| !word.starts_with('-') && Some(*own) != at.map(|at| at + 1));
    let Some((_, name)) = names.clone().next() else {
        player.fail("Usage: host [-t type] {name} [server]\n");
        return Ok(());
    };
    let resolver = Resolver::of(player);
    let (subject, kind) = subject(name, kind);
    match resolver.search(player, &subject, kind)? {
        Resolved::Silence => player.fail(";; connection timed out; no servers could be reached\n"),
        Resolved::Answer(_, answer) if answer.code == 3 => {
            player.fail(&format!("Host {name} not found: 3(NXDOMAIN)\n"))
        }
        Resolved::Answer(full, answer) if answer.records.is_empty() => {
            player.say(&format!("{full} has no {} record\n", if kind == 28 { "AAAA" } else { "A" }));
        }
        Resolved::Answer(_, answer) => {
            let said: String = answer.records.iter().map(told_by_host).collect();
            player.say(&said);
        }
    }
    Ok(())
}

fn told_by_host(record: &DnsAnswerRecord) -> String {
    let DnsAnswerRecord { name, kind, data, .. } = record;
    match *kind {
        "A" => format!("{name} has address {data}\n"),
        "AAAA" => format!("{name} has IPv6 address {data}\n"),
        "CNAME" => format!("{name} is an alias for {data}\n"),
        "PTR" => format!("{name} domain name pointer {data}\n"),
        "SRV" => format!("{name} has SRV record {data}\n"),
        kind => format!("{name} {} {data}\n", kind.to_lowercase()),
    }
}

/// `getent hosts NAME`
fn getent(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let (family, names) = match words {
        ["hosts" | "ahosts", names @ ..] => (AddressFamily::Any, names),
        ["ahostsv4", names @ ..] => (AddressFamily::V4, names),
        ["ahostsv6", names @ ..] => (AddressFamily::V6, names),
        _ => {
            player.status = if words.is_empty() { 3 } else { 1 };
            return Ok(());
        }
    };
    let is_of_streams = words.first().is_some_and(|word| word.starts_with("ahosts"));
    for name in names {
        let Some((address, canonical)) = named(player, name, family)? else {
            player.status = 2;
            continue;
        };
        let said = if is_of_streams {
            format!("{address:<15} STREAM {canonical}\n{address:<15} DGRAM\n{address:<15} RAW\n")
        } else {
            format!("{address:<15} {canonical}\n")
        };
        player.say(&said);
    }
    Ok(())
}

/// An address, and the name that it has in full; of an address the name that leads to it.
fn named(
    player: &mut Player<'_>,
    name: &str,
    family: AddressFamily,
) -> Result<Option<(IpAddr, String)>, AfterCommand> {
    let resolver = Resolver::of(player);
    if let Ok(address) = name.parse::<IpAddr>() {
        let kind = dns::type_of("PTR").unwrap_or_default();
        let found = resolver.search(player, &reversed(address), kind)?;
        let Resolved::Answer(_, answer) = found else { return Ok(None) };
        let record = answer.records.iter().find(|record| record.kind == "PTR");
        return Ok(record.map(|record| (address, record.data.trim_end_matches('.').to_owned())));
    }
    let found = resolve_named(player, name, family)?;
    Ok(found.map(|(address, full)| (address, full.unwrap_or_else(|| name.to_owned()))))
}
