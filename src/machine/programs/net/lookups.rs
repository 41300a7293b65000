//! Programs that look up names: `nslookup` in BusyBox' form, `dig`, `host` and `getent`.

use std::net::IpAddr;

use super::resolver::{AddressFamily, Resolved, Resolver, resolve, resolve_of};
use crate::dns::{self, DnsAnswer, DnsRecord};
use crate::interpreter::player::{Flow, Player};

pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> Result<(), Flow> {
    match name {
        "nslookup" => nslookup(player, words),
        "dig" => dig(player, words),
        "host" => host(player, words),
        _ => getent(player, words),
    }
}

/// The name in which an address is looked up.
fn reversed(address: IpAddr) -> String {
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
fn nslookup(player: &mut Player<'_>, words: &[&str]) -> Result<(), Flow> {
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
fn add_ipv6(player: &mut Player<'_>, resolver: &Resolver, found: &mut Resolved) -> Result<(), Flow> {
    let Resolved::Answer(full, answer) = found else { return Ok(()) };
    if answer.code != 0 {
        return Ok(());
    }
    let kind = dns::type_of("AAAA").unwrap_or_default();
    let further = resolver.ask(player, full, kind)?.map(|further| further.records).unwrap_or_default();
    answer.records.extend(further.into_iter().filter(|record| record.kind == "AAAA"));
    Ok(())
}

fn looked_up(record: &DnsRecord) -> String {
    let DnsRecord { name, kind, data, .. } = record;
    match *kind {
        "A" | "AAAA" => format!("Name:\t{name}\nAddress: {data}\n"),
        "PTR" => format!("{name}\tname = {}\n", data.trim_end_matches('.')),
        "CNAME" => format!("{name}\tcanonical name = {}\n", data.trim_end_matches('.')),
        "SRV" => format!("{name}\tservice = {data}\n"),
        kind => format!("{name}\t{} = {data}\n", kind.to_lowercase()),
    }
}

#[derive(Default)]
struct DigOptions<'a> {
    name: String,
    kind: Option<&'a str>,
    server: Option<&'a str>,
    is_short: bool,
    searches: bool,
    /// Nothing but what is asked for by name.
    is_bare: bool,
    shows_answer: bool,
}

fn dig_options<'a>(words: &[&'a str]) -> DigOptions<'a> {
    let (mut options, mut words) = (DigOptions::default(), words.iter().copied());
    while let Some(word) = words.next() {
        match word {
            "+short" => options.is_short = true,
            "+search" => options.searches = true,
            "+noall" => options.is_bare = true,
            "+answer" => options.shows_answer = true,
            "-t" | "-q" => match words.next() {
                Some(value) if word == "-t" => options.kind = Some(value),
                value => options.name = value.unwrap_or_default().to_owned(),
            },
            "-x" => {
                let address = words.next().and_then(|address| address.parse().ok());
                options.name = address.map(reversed).unwrap_or_default();
                options.kind = Some("PTR");
            }
            word if word.starts_with('@') => options.server = Some(&word[1..]),
            word if word.starts_with(['+', '-']) => {}
            word if dns::type_of(word).is_some() && !options.name.is_empty() => options.kind = Some(word),
            "IN" => {}
            word if dns::type_of(word).is_some() => options.kind = Some(word),
            word => options.name = word.to_owned(),
        }
    }
    options
}

fn dig(player: &mut Player<'_>, words: &[&str]) -> Result<(), Flow> {
    let options = dig_options(words);
    let mut resolver = Resolver::of(player);
    if let Some(server) = options.server {
        resolver.server = resolve(player, server)?;
    }
    let kind = options.kind.unwrap_or("A");
    let number = dns::type_of(kind).unwrap_or(1);
    let found = if options.searches {
        resolver.search(player, &options.name, number)?
    } else {
        let answer = resolver.ask(player, &options.name, number)?;
        answer.map_or(Resolved::Silence, |answer| Resolved::Answer(options.name.clone(), answer))
    };
    let (Resolved::Answer(full, answer), Some(server)) = (found, resolver.server) else {
        player.say(";; communications error: timed out\n;; no servers could be reached\n");
        player.status = 9;
        return Ok(());
    };
    let said = if options.is_short {
        answer.records.iter().map(|record| format!("{}\n", record.data)).collect()
    } else {
        dug(&options, &full, kind, &answer, server)
    };
    player.say(&said);
    Ok(())
}

fn dug(options: &DigOptions<'_>, name: &str, kind: &str, answer: &DnsAnswer, server: IpAddr) -> String {
    let records = answer.records.iter().map(|record| {
        let DnsRecord { name, kind, ttl, data } = record;
        format!("{name}.\t\t{ttl}\tIN\t{kind}\t{data}\n")
    });
    let records: String = records.collect();
    if options.is_bare {
        return if options.shows_answer { records } else { String::new() };
    }
    let (status, count, id) = (answer.status(), answer.records.len(), answer.id);
    let section = if count == 0 { String::new() } else { format!(";; ANSWER SECTION:\n{records}\n") };
    format!(
        "\n; <<>> DiG 9.18.0 <<>> {name}\n;; global options: +cmd\n;; Got answer:\n\
         ;; ->>HEADER<<- opcode: QUERY, status: {status}, id: {id}\n\
         ;; flags: qr aa rd; QUERY: 1, ANSWER: {count}, AUTHORITY: 0, ADDITIONAL: 0\n\n\
         ;; QUESTION SECTION:\n;{}.\t\tIN\t{kind}\n\n{section};; SERVER: {server}#53({server}) (UDP)\n\n",
        name.trim_end_matches('.'),
    )
}

fn host(player: &mut Player<'_>, words: &[&str]) -> Result<(), Flow> {
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

fn told_by_host(record: &DnsRecord) -> String {
    let DnsRecord { name, kind, data, .. } = record;
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
fn getent(player: &mut Player<'_>, words: &[&str]) -> Result<(), Flow> {
    let (family, names) = match words {
        ["hosts" | "ahosts", names @ ..] => (AddressFamily::Any, names),
        ["ahostsv4", names @ ..] => (AddressFamily::V4, names),
        ["ahostsv6", names @ ..] => (AddressFamily::V6, names),
        _ => {
            player.status = if words.is_empty() { 3 } else { 1 };
            return Ok(());
        }
    };
    for name in names {
        match resolve_of(player, name, family)? {
            Some(address) => player.say(&format!("{address:<15} {name}\n")),
            None => player.status = 2,
        }
    }
    Ok(())
}
