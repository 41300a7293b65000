//! `NameServer`: answers questions (`plugin/kubernetes`, `plugin/backend_lookup.go`).

use std::net::IpAddr;

use bytes::Bytes;
use network::dns::{DnsMessage, DnsQuestion, DnsRecord, RecordData, RecordType, ResponseCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::objects::{Behind, NamedPort, NamedService, NamedSlice};
use crate::reverse;
use crate::zone::{CLUSTER_DOMAIN, DNS_SCHEMA_VERSION, Meaning, below, meaning};
use apimachinery::object::{Object, object_key};
use apis::core::namespace::NAMESPACES;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// For how long an answer holds, in seconds (kubeadm's `ttl 30`).
const TTL: u32 = 30;
/// The longest chain of names that lead to names; what is longer has no address.
const MAX_ALIASES: usize = 8;
/// The index of slices by their Service, as `NAMESPACE/NAME`.
const BY_SERVICE: &str = "service";
/// The index of Services, and of slices with host names, by address.
const BY_ADDRESS: &str = "address";
/// The weight of all targets of a question together.
const WEIGHT: u16 = 100;

/// The cluster's name server. Cloning shares it.
#[derive(Clone)]
pub struct NameServer {
    services: Lister,
    slices: Lister,
    namespaces: Lister,
}

/// What is known of a name.
#[derive(Default)]
struct FoundRecords {
    answers: Vec<DnsRecord>,
    additional: Vec<DnsRecord>,
}

impl NameServer {
    /// With the informers of a component, which are begun elsewhere.
    pub fn new(context: &ComponentContext) -> NameServer {
        let services = context.informers.informer(&SERVICES);
        let slices = context.informers.informer(&ENDPOINT_SLICES);
        services.add_index(BY_ADDRESS, addresses_of_service);
        slices.add_index(BY_SERVICE, service_of_slice);
        slices.add_index(BY_ADDRESS, addresses_with_names);
        let namespaces = context.informers.informer(&NAMESPACES).lister();
        NameServer { services: services.lister(), slices: slices.lister(), namespaces }
    }

    #[cfg(test)]
    pub(crate) fn over(services: Lister, slices: Lister, namespaces: Lister) -> NameServer {
        NameServer { services, slices, namespaces }
    }

    /// The answer to a datagram; nothing when that is no question.
    pub fn answer_datagram(&self, datagram: &[u8]) -> Option<Bytes> {
        let asked = DnsMessage::read(datagram).filter(|message| !message.is_answer)?;
        Some(self.answer(&asked).write_datagram(asked.udp_bytes))
    }

    /// Answers what is asked over a connection, each message with its length before it, until it ends.
    pub async fn serve(self, mut io: DuplexStream) {
        while let Ok(length) = io.read_u16().await {
            let mut asked = vec![0; usize::from(length)];
            if io.read_exact(&mut asked).await.is_err() {
                return;
            }
            let Some(asked) = DnsMessage::read(&asked) else { return };
            let answer = self.answer(&asked).write();
            // It is never larger than can be said.
            let Ok(length) = u16::try_from(answer.len()) else { return };
            if io.write_u16(length).await.is_err() || io.write_all(&answer).await.is_err() {
                return;
            }
        }
    }

    /// The answer to a message.
    pub fn answer(&self, asked: &DnsMessage) -> DnsMessage {
        let Some(DnsQuestion { name, kind }) = &asked.question else {
            return asked.answer(ResponseCode::FORMAT_ERROR);
        };
        // Names are alike in either case, and said back as they were asked for.
        let lower = name.to_ascii_lowercase();
        let found = if let Some(address) = reverse::address(&lower) {
            self.pointers(name, address, *kind)
        } else if below(&lower).is_some() {
            self.below_domain(name, &lower, *kind, 0)
        } else {
            // Others' names are not known, and nobody is asked.
            return asked.answer(ResponseCode::NO_NAME);
        };
        let outcome = if found.is_some() { ResponseCode::NO_ERROR } else { ResponseCode::NO_NAME };
        let mut answer = asked.answer(outcome);
        answer.is_authoritative = true;
        let FoundRecords { answers, additional } = found.unwrap_or_default();
        if answers.is_empty() {
            answer.authorities = vec![start_of_authority()];
        }
        (answer.answers, answer.additional) = (answers, additional);
        answer
    }

    /// What there is of a name below the cluster's domain; nothing where there is no such name.
    fn below_domain(&self, name: &str, lower: &str, kind: RecordType, depth: usize) -> Option<FoundRecords> {
        let inner = below(lower)?;
        match meaning(inner) {
            Meaning::Branch if inner.is_empty() && kind == RecordType::SOA => {
                Some(FoundRecords { answers: vec![start_of_authority()], additional: vec![] })
            }
            Meaning::Branch => Some(FoundRecords::default()),
            Meaning::Nothing => None,
            Meaning::Version => {
                let text = RecordData::Text(DNS_SCHEMA_VERSION.into());
                Some(FoundRecords::of(name, kind, [text]))
            }
            Meaning::Namespace(namespace) => self.has_namespace(namespace).then(FoundRecords::default),
            Meaning::Pod { namespace, address } => {
                let address = address.filter(|_| self.has_namespace(namespace))?;
                Some(FoundRecords::of(name, kind, [data(address)]))
            }
            Meaning::Service { namespace, service } => {
                self.of_service(name, (namespace, service), kind, &|_| true, depth)
            }
            Meaning::Port { namespace, service, port, protocol } => {
                let is_it = |own: &NamedPort| own.is(port, protocol);
                self.of_service(name, (namespace, service), kind, &is_it, depth)
            }
            Meaning::Endpoint { namespace, service, endpoint } => {
                self.of_endpoint(name, (namespace, service), kind, endpoint)
            }
        }
    }

    fn of_service(
        &self,
        name: &str,
        (namespace, service): (&str, &str),
        kind: RecordType,
        is_port: &dyn Fn(&NamedPort) -> bool,
        depth: usize,
    ) -> Option<FoundRecords> {
        let object = self.services.get(namespace, service).filter(|_| self.has_namespace(namespace))?;
        let own = NamedService::of(&object);
        let domain = format!("{service}.{namespace}.svc.{CLUSTER_DOMAIN}");
        match own.behind() {
            Behind::Name(target) => Some(self.alias(name, target, kind, depth)),
            Behind::Addresses(addresses) => {
                let ports: Vec<u16> =
                    own.spec.ports.iter().filter(|port| is_port(port)).map(|port| port.port).collect();
                if ports.is_empty() && !own.spec.ports.is_empty() {
                    return None;
                }
                let hosts = [(domain, addresses)];
                Some(FoundRecords::of_hosts(name, kind, &hosts, &ports))
            }
            Behind::Endpoints => {
                let mut found = FoundRecords::default();
                let mut is_there = false;
                for slice in self.slices_of(namespace, service) {
                    let ports: Vec<u16> =
                        slice.ports.iter().filter(|port| is_port(port)).map(|port| port.port).collect();
                    if ports.is_empty() && !slice.ports.is_empty() {
                        continue;
                    }
                    let hosts: Vec<(String, Vec<IpAddr>)> = slice
                        .named()
                        .map(|(address, host)| (format!("{host}.{domain}"), vec![address]))
                        .collect();
                    is_there |= !hosts.is_empty();
                    found.add(FoundRecords::of_hosts(name, kind, &hosts, &ports));
                }
                // Without endpoints there is no such name.
                is_there.then_some(found)
            }
        }
    }

    fn of_endpoint(
        &self,
        name: &str,
        (namespace, service): (&str, &str),
        kind: RecordType,
        endpoint: &str,
    ) -> Option<FoundRecords> {
        self.services.get(namespace, service).filter(|_| self.has_namespace(namespace))?;
        let mut found = FoundRecords::default();
        let mut is_there = false;
        for slice in self.slices_of(namespace, service) {
            let ports: Vec<u16> = slice.ports.iter().map(|port| port.port).collect();
            for (address, _) in slice.named().filter(|(_, host)| host.eq_ignore_ascii_case(endpoint)) {
                is_there = true;
                let hosts = [(name.to_owned(), vec![address])];
                found.add(FoundRecords::of_hosts(name, kind, &hosts, &ports));
            }
        }
        is_there.then_some(found)
    }

    /// Another name, and what that leads to when it is the cluster's.
    fn alias(&self, name: &str, target: String, kind: RecordType, depth: usize) -> FoundRecords {
        let alias = record(name, RecordData::Alias(target.clone()));
        let lower = target.to_ascii_lowercase();
        let follows = matches!(kind, RecordType::A | RecordType::AAAA) && depth < MAX_ALIASES;
        let further = if follows { self.below_domain(&target, &lower, kind, depth + 1) } else { None };
        let mut found = FoundRecords { answers: vec![alias], additional: vec![] };
        found.add(further.unwrap_or_default());
        found
    }

    /// The names of an address: of the Service whose it is, or of endpoints that have host names.
    fn pointers(&self, name: &str, address: IpAddr, kind: RecordType) -> Option<FoundRecords> {
        let text = address.to_string();
        if let Some(service) = self.services.by_index(BY_ADDRESS, &text).first() {
            let domain = domain_of(&service.metadata.namespace, &service.metadata.name);
            return Some(FoundRecords::of(name, kind, [RecordData::Name(domain)]));
        }
        let slices = self.slices.by_index(BY_ADDRESS, &text);
        let names = slices.iter().flat_map(|slice| {
            let service = slice.metadata.labels.get(SERVICE_NAME).cloned().unwrap_or_default();
            let domain = domain_of(&slice.metadata.namespace, &service);
            let named: Vec<(IpAddr, String)> = NamedSlice::of(slice).named().collect();
            let own = named.into_iter().filter(move |(own, _)| *own == address);
            own.map(move |(_, host)| RecordData::Name(format!("{host}.{domain}")))
        });
        let names: Vec<RecordData> = names.collect();
        (!names.is_empty()).then(|| FoundRecords::of(name, kind, names))
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        self.namespaces.get("", namespace).is_some()
    }

    fn slices_of(&self, namespace: &str, service: &str) -> Vec<NamedSlice> {
        let slices = self.slices.by_index(BY_SERVICE, &object_key(namespace, service));
        slices.iter().map(|slice| NamedSlice::of(slice)).collect()
    }
}

impl FoundRecords {
    /// What of this is of the type that is asked for.
    fn of(name: &str, kind: RecordType, data: impl IntoIterator<Item = RecordData>) -> FoundRecords {
        let fitting = data.into_iter().filter(|data| data.kind() == kind);
        FoundRecords { answers: fitting.map(|data| record(name, data)).collect(), additional: vec![] }
    }

    /// The addresses of hosts, or where their ports are.
    fn of_hosts(
        name: &str,
        kind: RecordType,
        hosts: &[(String, Vec<IpAddr>)],
        ports: &[u16],
    ) -> FoundRecords {
        let addresses = || hosts.iter().flat_map(|(_, addresses)| addresses.iter().copied().map(data));
        if kind != RecordType::SRV {
            return FoundRecords::of(name, kind, addresses());
        }
        let count = u16::try_from(hosts.len() * ports.len()).unwrap_or(u16::MAX).max(1);
        let weight = (WEIGHT / count).max(1);
        let places = hosts.iter().flat_map(|(host, _)| {
            ports.iter().map(move |port| RecordData::Place(0, weight, *port, host.clone()))
        });
        let further = hosts
            .iter()
            .flat_map(|(host, addresses)| addresses.iter().map(move |address| record(host, data(*address))));
        FoundRecords {
            answers: places.map(|place| record(name, place)).collect(),
            additional: further.collect(),
        }
    }

    fn add(&mut self, other: FoundRecords) {
        self.answers.extend(other.answers);
        self.additional.extend(other.additional);
    }
}

/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

pub(crate) fn service_of_slice(slice: &Object) -> Vec<String> {
    let name = slice.metadata.labels.get(SERVICE_NAME);
    name.map(|name| object_key(&slice.metadata.namespace, name)).into_iter().collect()
}

pub(crate) fn addresses_of_service(service: &Object) -> Vec<String> {
    match NamedService::of(service).behind() {
        Behind::Addresses(addresses) => addresses.iter().map(IpAddr::to_string).collect(),
        _ => vec![],
    }
}

pub(crate) fn addresses_with_names(slice: &Object) -> Vec<String> {
    let mut slice = NamedSlice::of(slice);
    slice.endpoints.retain(|endpoint| endpoint.hostname.as_ref().is_some_and(|name| !name.is_empty()));
    slice.named().map(|(address, _)| address.to_string()).collect()
}

fn domain_of(namespace: &str, service: &str) -> String {
    format!("{service}.{namespace}.svc.{CLUSTER_DOMAIN}")
}

fn data(address: IpAddr) -> RecordData {
    match address {
        IpAddr::V4(address) => RecordData::V4(address),
        IpAddr::V6(address) => RecordData::V6(address),
    }
}

fn record(name: &str, data: RecordData) -> DnsRecord {
    DnsRecord { name: name.to_owned(), ttl: TTL, data }
}

/// The serial is no time: a cluster on a stepped clock answers the same each time.
fn start_of_authority() -> DnsRecord {
    let numbers = [1, 7_200, 1_800, 86_400, TTL];
    let server = format!("ns.dns.{CLUSTER_DOMAIN}");
    let mailbox = format!("hostmaster.{CLUSTER_DOMAIN}");
    record(CLUSTER_DOMAIN, RecordData::Zone(server, mailbox, numbers))
}
