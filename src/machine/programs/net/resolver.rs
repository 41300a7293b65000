//! The resolver of a container (`resolv.conf`, `/etc/hosts`), as the C library is one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::dns::{self, DnsAnswer};
use crate::interpreter::player::{AfterCommand, Player};
use crate::questions::{NetworkAsk, NetworkReply, Question};

/// How long a server is waited for, and how often it is asked (`timeout`, `attempts`).
const TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 2;
/// So many domains are searched, as many as a pod may name; what is behind is left out.
const MAX_SEARCHED: usize = 32;

/// What `/etc/resolv.conf` says.
pub(super) struct Resolver {
    /// Joins an answer to its question.
    pub(super) id: u16,
    pub(super) server: Option<IpAddr>,
    search: Vec<String>,
    ndots: usize,
}

/// What became of a name.
pub(super) enum Resolved {
    /// An answer, and the name that it is for.
    Answer(String, DnsAnswer),
    /// No server answers.
    Silence,
}

impl Resolver {
    pub(super) fn of(player: &Player<'_>) -> Resolver {
        let text = player.file("/etc/resolv.conf").map(|file| file.text()).unwrap_or_default();
        let mut resolver = Resolver { id: 1, server: None, search: vec![], ndots: 1 };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    resolver.server = resolver.server.or(words.next().and_then(|it| it.parse().ok()))
                }
                Some("search") => resolver.search = words.take(MAX_SEARCHED).map(str::to_owned).collect(),
                Some("options") => {
                    let ndots = words.find_map(|word| word.strip_prefix("ndots:")?.parse().ok());
                    resolver.ndots = ndots.unwrap_or(resolver.ndots);
                }
                _ => {}
            }
        }
        resolver
    }

    /// The names that a name may stand for, in the order in which they are tried.
    fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(absolute) = name.strip_suffix('.') {
            return vec![absolute.to_owned()];
        }
        let mut names: Vec<String> = self.search.iter().map(|domain| format!("{name}.{domain}")).collect();
        let at = if name.matches('.').count() >= self.ndots { 0 } else { names.len() };
        names.insert(at, name.to_owned());
        names
    }

    /// Asks for a name alone.
    pub(super) fn ask(
        &self,
        player: &mut Player<'_>,
        name: &str,
        kind: u16,
    ) -> Result<Option<DnsAnswer>, AfterCommand> {
        let (Some(server), Some(send)) = (self.server, dns::query(self.id, name, kind)) else {
            return Ok(None);
        };
        let to = SocketAddr::new(server, 53);
        let what = NetworkAsk::Udp { to, send: send.clone() };
        for _ in 0..ATTEMPTS {
            match player.ask(Question { what: what.clone(), within: TIMEOUT })? {
                NetworkReply::Bytes(bytes) => match dns::read(&bytes) {
                    Some(answer) if answer.is_truncated => return ask_over_tcp(player, to, &send, answer),
                    answer => return Ok(answer),
                },
                NetworkReply::TimedOut(_) => {}
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Looks for the first of the names that a name may stand for which has such records; the last answer
    /// where none has.
    pub(super) fn search(
        &self,
        player: &mut Player<'_>,
        name: &str,
        kind: u16,
    ) -> Result<Resolved, AfterCommand> {
        let mut last = None;
        for candidate in self.candidates(name) {
            match self.ask(player, &candidate, kind)? {
                Some(answer) if !answer.records.is_empty() => return Ok(Resolved::Answer(candidate, answer)),
                Some(answer) => last = Some(answer),
                None => return Ok(Resolved::Silence),
            }
        }
        Ok(last.map_or(Resolved::Silence, |answer| Resolved::Answer(name.to_owned(), answer)))
    }
}

/// The whole of an answer that did not fit into a datagram; `partial` where nobody says it over TCP.
fn ask_over_tcp(
    player: &mut Player<'_>,
    to: SocketAddr,
    query: &[u8],
    partial: DnsAnswer,
) -> Result<Option<DnsAnswer>, AfterCommand> {
    let length = u16::try_from(query.len()).unwrap_or_default().to_be_bytes();
    let what = NetworkAsk::Tcp { to, send: [&length[..], query].concat(), reads: true };
    let whole = match player.ask(Question { what, within: TIMEOUT })? {
        NetworkReply::Bytes(bytes) => bytes.get(2..).and_then(dns::read),
        _ => None,
    };
    Ok(Some(whole.unwrap_or(partial)))
}

/// Which addresses a program wants (`-4`, `-6`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AddressFamily {
    /// Any; that of IPv4, where there are both.
    #[default]
    Any,
    /// `-4`
    V4,
    /// `-6`
    V6,
}

impl AddressFamily {
    /// What options say; others are not looked at.
    pub(super) fn of(words: &[&str]) -> AddressFamily {
        match words.iter().rev().find(|word| matches!(**word, "-4" | "-6")) {
            Some(&"-4") => AddressFamily::V4,
            Some(_) => AddressFamily::V6,
            None => AddressFamily::Any,
        }
    }

    fn takes(self, address: IpAddr) -> bool {
        self == AddressFamily::Any || address.is_ipv6() == (self == AddressFamily::V6)
    }

    fn record_types(self) -> &'static [&'static str] {
        match self {
            AddressFamily::Any => &["A", "AAAA"],
            AddressFamily::V4 => &["A"],
            AddressFamily::V6 => &["AAAA"],
        }
    }
}

/// An address of a host: itself, from `/etc/hosts`, or by DNS; nothing where it has none.
pub(crate) fn resolve(player: &mut Player<'_>, host: &str) -> Result<Option<IpAddr>, AfterCommand> {
    resolve_of(player, host, AddressFamily::Any)
}

/// [`resolve`], of one family.
pub(super) fn resolve_of(
    player: &mut Player<'_>,
    host: &str,
    family: AddressFamily,
) -> Result<Option<IpAddr>, AfterCommand> {
    Ok(resolve_named(player, host, family)?.map(|(address, _)| address))
}

/// [`resolve_of`], with the name in full where DNS says it.
pub(super) fn resolve_named(
    player: &mut Player<'_>,
    host: &str,
    family: AddressFamily,
) -> Result<Option<(IpAddr, Option<String>)>, AfterCommand> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Ok(Some(address).filter(|address| family.takes(*address)).map(|address| (address, None)));
    }
    if host == "localhost" {
        let is_v6 = family == AddressFamily::V6;
        let address = if is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        return Ok(Some((address, None)));
    }
    let hosts = player.file("/etc/hosts").map(|file| file.text()).unwrap_or_default();
    let mut of_hosts = hosts.lines().filter_map(|line| of_hosts(line, host));
    if let Some(address) = of_hosts.find(|address| family.takes(*address)) {
        return Ok(Some((address, None)));
    }
    let resolver = Resolver::of(player);
    for kind in family.record_types() {
        let kind = dns::type_of(kind).unwrap_or_default();
        if let Resolved::Answer(full, answer) = resolver.search(player, host, kind)?
            && let Some(address) = answer.addresses().first()
        {
            let full = full.trim_end_matches('.').to_owned();
            return Ok(Some((*address, Some(full))));
        }
    }
    Ok(None)
}

/// The address of a line of `/etc/hosts` that has this name.
fn of_hosts(line: &str, host: &str) -> Option<IpAddr> {
    let line = line.split('#').next()?;
    let mut words = line.split_whitespace();
    let address = words.next()?.parse().ok()?;
    words.any(|name| name == host).then_some(address)
}
