//! Names to addresses, as a program in a container finds them (glibc's `getaddrinfo` and `resolv.conf(5)`).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::dns::{DnsMessage, RecordData, RecordType, ResponseCode};
use crate::network::Network;

/// The port of name servers.
pub const DNS_PORT: u16 = 53;
/// So many servers are asked (`MAXNS`); further ones are left out.
pub const MAX_SERVERS: usize = 3;
/// So many domains are searched (the kubelet's `MaxDNSSearchPaths`); further ones are left out.
pub const MAX_SEARCHES: usize = 32;

/// `/etc/resolv.conf`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// Who is asked, one after the other.
    pub servers: Vec<IpAddr>,
    /// What is put behind a name.
    pub searches: Vec<String>,
    /// A name with fewer dots is searched before it is asked for as it is.
    pub ndots: usize,
    /// How long a server has to answer.
    pub timeout: Duration,
    /// How often all servers are asked.
    pub attempts: usize,
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// There is no such name (`EAI_NONAME`).
    NoName,
    /// There is, and it has no address (`EAI_NODATA`).
    NoData,
    /// No server answers, or none can (`EAI_AGAIN`).
    NoAnswer,
}

impl ResolvConf {
    /// Reads one; what it does not say is as `resolv.conf(5)` has it.
    pub fn parse(text: &str) -> ResolvConf {
        let timeout = Duration::from_secs(5);
        let mut conf = ResolvConf { servers: vec![], searches: vec![], ndots: 1, timeout, attempts: 2 };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => {
                    conf.servers.extend(words.next().and_then(|word| word.parse::<IpAddr>().ok()))
                }
                Some("search" | "domain") => conf.searches = words.map(str::to_owned).collect(),
                Some("options") => words.for_each(|word| conf.option(word)),
                _ => {}
            }
        }
        conf.servers.truncate(MAX_SERVERS);
        conf.searches.truncate(MAX_SEARCHES);
        conf
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let Ok(number) = value.parse::<u64>() else { return };
        // As far as the library goes.
        match name {
            "ndots" => self.ndots = number.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(number.min(30)),
            "attempts" => self.attempts = number.clamp(1, 5) as usize,
            _ => {}
        }
    }

    /// The names that are asked for, in their order.
    pub fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.to_owned()];
        }
        let as_it_is = name.to_owned();
        let searched = self.searches.iter().map(|search| format!("{name}.{}", search.trim_end_matches('.')));
        let dots = name.matches('.').count();
        if dots >= self.ndots {
            std::iter::once(as_it_is).chain(searched).collect()
        } else {
            searched.chain(std::iter::once(as_it_is)).collect()
        }
    }
}

impl Network {
    /// The addresses of a name, those of IPv4 first; of an address itself. `/etc/hosts` is the caller's.
    ///
    /// # Errors
    /// [`NameError`]
    pub async fn resolve(
        &self,
        from: IpAddr,
        conf: &ResolvConf,
        name: &str,
    ) -> Result<Vec<IpAddr>, NameError> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        let mut failure = NameError::NoName;
        for candidate in conf.candidates(name) {
            let mut found = vec![];
            for kind in [RecordType::A, RecordType::AAAA] {
                match self.look_up(from, conf, &candidate, kind).await {
                    Ok(answer) => found.extend(answer.answers.iter().filter_map(|record| record.data.ip())),
                    Err(NameError::NoAnswer) => return Err(NameError::NoAnswer),
                    Err(NameError::NoName) => break,
                    Err(NameError::NoData) => failure = NameError::NoData,
                }
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err(failure)
    }

    /// What the servers say of one name, which is not searched for.
    ///
    /// # Errors
    /// [`NameError`]
    pub async fn look_up(
        &self,
        from: IpAddr,
        conf: &ResolvConf,
        name: &str,
        kind: RecordType,
    ) -> Result<DnsMessage, NameError> {
        let asked = DnsMessage { udp_bytes: Some(1_232), ..DnsMessage::ask(1, name, kind) };
        for _ in 0..conf.attempts {
            for server in &conf.servers {
                let server = SocketAddr::new(*server, DNS_PORT);
                let asking = self.ask(from, server, asked.write());
                match self.clock().timeout(conf.timeout, asking).await {
                    // Nothing will come: the library waits for it all the same.
                    Ok(Ok(None)) => self.clock().sleep(conf.timeout).await,
                    Ok(Ok(Some(bytes))) => match self.whole(from, conf, server, &asked, &bytes).await {
                        Some(answer) if answer.outcome == ResponseCode::NO_NAME => {
                            return Err(NameError::NoName);
                        }
                        Some(answer) if answer.outcome != ResponseCode::NO_ERROR => {}
                        Some(answer) if answer.answers.is_empty() => return Err(NameError::NoData),
                        Some(answer) => return Ok(answer),
                        None => {}
                    },
                    Ok(Err(_)) | Err(_) => {}
                }
            }
        }
        Err(NameError::NoAnswer)
    }

    /// What a datagram says. Of one that did not take all, what is said over TCP; where nobody says that,
    /// what it took.
    async fn whole(
        &self,
        from: IpAddr,
        conf: &ResolvConf,
        server: SocketAddr,
        asked: &DnsMessage,
        datagram: &[u8],
    ) -> Option<DnsMessage> {
        let answer = DnsMessage::read(datagram)?;
        if !answer.is_truncated {
            return Some(answer);
        }
        let again = self.clock().timeout(conf.timeout, self.ask_over_tcp(from, server, asked)).await;
        let whole = again.ok().flatten().and_then(|bytes| DnsMessage::read(&bytes));
        Some(whole.unwrap_or(answer))
    }

    async fn ask_over_tcp(&self, from: IpAddr, server: SocketAddr, asked: &DnsMessage) -> Option<Vec<u8>> {
        let mut io = self.connect(from, server).await.ok()?;
        let asked = asked.write();
        io.write_u16(u16::try_from(asked.len()).ok()?).await.ok()?;
        io.write_all(&asked).await.ok()?;
        let mut answer = vec![0; usize::from(io.read_u16().await.ok()?)];
        io.read_exact(&mut answer).await.ok()?;
        Some(answer)
    }
}

impl RecordData {
    /// The address that it says.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            RecordData::V4(address) => Some((*address).into()),
            RecordData::V6(address) => Some((*address).into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_A_POD: &str = "search default.svc.cluster.local svc.cluster.local cluster.local\n\
                            nameserver 10.96.0.10\noptions ndots:5 timeout:2\n";

    #[test]
    fn a_pods_file_is_read() {
        let conf = ResolvConf::parse(OF_A_POD);
        assert_eq!(conf.servers, ["10.96.0.10".parse::<IpAddr>().unwrap()]);
        assert_eq!((conf.searches.len(), conf.ndots, conf.timeout.as_secs()), (3, 5, 2));
        let many = "nameserver 10.0.0.1\n".repeat(MAX_SERVERS + 1);
        assert_eq!(ResolvConf::parse(&many).servers.len(), MAX_SERVERS);
        let many = format!("search {}", "a ".repeat(MAX_SEARCHES + 1));
        assert_eq!(ResolvConf::parse(&many).searches.len(), MAX_SEARCHES);
    }

    #[test]
    fn names_of_few_dots_are_searched_first() {
        let conf = ResolvConf::parse(OF_A_POD);
        let searched = ["web.default.svc.cluster.local", "web.svc.cluster.local", "web.cluster.local", "web"];
        assert_eq!(conf.candidates("web"), searched);
        assert_eq!(conf.candidates("web.")[..], ["web"]);
        assert_eq!(conf.candidates("a.b.c.d.e.f")[0], "a.b.c.d.e.f");
    }
}
