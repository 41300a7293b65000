//! What becomes of a passage: hosts, routes, firewall and weather.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::address_range::AddressRange;
use crate::dns::{DnsMessage, DnsRecord, RecordData, RecordType, ResponseCode};
use crate::network::{CONNECT_TIMEOUT, MAX_CONNECTIONS, MAX_DATAGRAM_BYTES, NetworkParts, UNREACHABLE_AFTER};
use crate::passage::{Accept, Firewall, Hosts, Obstacle, Passage, Route, Routing};
use crate::resolver::ResolvConf;
use crate::weather::{Disturbance, MAX_RULES, TooManyRules};
use crate::{Network, Refusal};
use clock::Clock;
use entropy::Entropy;

const POD: &str = "10.244.1.2";
const SERVER: &str = "10.244.1.3";
const SERVICE: &str = "10.96.0.10";
/// Leads to [`SERVICE`].
const CIRCLE: &str = "10.96.0.11";
const KEPT_OUT: &str = "10.244.1.9";

/// [`SERVER`] says who asks, at port 80, and then what it hears.
struct OneServer;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip(address), port)
}

impl Hosts for OneServer {
    fn accept(&self, passage: Passage) -> BoxFuture<'_, Result<Accept, Obstacle>> {
        let found = match passage.to {
            to if to == at(SERVER, 80) => Ok(echo()),
            to if to == at(SERVER, 53) => Ok(names()),
            to if to.ip() == ip(SERVER) => Err(Obstacle::Refused),
            _ => Err(Obstacle::Unreachable),
        };
        ready(found).boxed()
    }

    fn reply(&self, passage: Passage, datagram: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, Obstacle>> {
        let answer = match passage.to.port() {
            53 if many(&datagram).is_some() => Ok(many(&datagram).map(|answer| answer.write_datagram(None))),
            53 => Ok(Some(datagram)),
            54 => Ok(None),
            _ => Err(Obstacle::Refused),
        };
        ready(answer).boxed()
    }

    fn is_there(&self, address: IpAddr) -> BoxFuture<'_, bool> {
        ready(address == ip(SERVER)).boxed()
    }
}

/// The name `many` has 50 addresses.
fn many(question: &[u8]) -> Option<DnsMessage> {
    let asked = DnsMessage::read(question).filter(|asked| !asked.is_answer)?;
    let name = asked.question.as_ref().filter(|question| question.name == "many")?.name.clone();
    let mut answer = asked.answer(ResponseCode::NO_ERROR);
    answer.answers = (1..=50)
        .map(|last| DnsRecord { name: name.clone(), ttl: 30, data: RecordData::V4([10, 0, 0, last].into()) })
        .collect();
    Some(answer)
}

/// One question over TCP is answered.
fn names() -> Accept {
    Arc::new(|mut io, _| {
        async move {
            let mut asked = vec![0; usize::from(io.read_u16().await.unwrap())];
            io.read_exact(&mut asked).await.unwrap();
            let answer = many(&asked).unwrap().write();
            io.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
            io.write_all(&answer).await.unwrap();
        }
        .boxed()
    })
}

fn echo() -> Accept {
    Arc::new(|mut io, from| {
        async move {
            let _ = io.write_all(format!("{} ", from.ip()).as_bytes()).await;
            let (mut said, mut heard) = tokio::io::split(io);
            let _ = tokio::io::copy(&mut said, &mut heard).await;
            let _ = heard.shutdown().await;
        }
        .boxed()
    })
}

impl Routing for OneServer {
    fn route(&self, passage: Passage) -> BoxFuture<'_, Route> {
        let route = match passage.to.ip() {
            to if to == ip(SERVICE) && passage.to.port() == 80 => {
                Route::To { to: at(SERVER, 80), from: ip("172.18.0.2") }
            }
            to if to == ip(SERVICE) => Route::Nowhere(Obstacle::Refused),
            to if to == ip(CIRCLE) => Route::To { to: at(SERVICE, 80), from: passage.from.ip() },
            _ => Route::Direct,
        };
        ready(route).boxed()
    }
}

impl Firewall for OneServer {
    fn lets_through(&self, _: Passage, asker: IpAddr) -> BoxFuture<'_, bool> {
        ready(asker != ip(KEPT_OUT)).boxed()
    }
}

fn network(clock: &Clock) -> Network {
    let server = Arc::new(OneServer);
    let (hosts, routes, firewall) = (server.clone(), server.clone(), server);
    let (clock, entropy) = (clock.clone(), Entropy::seeded(7));
    Network::new(NetworkParts { hosts, routes, firewall, clock, entropy })
}

fn stepped() -> Clock {
    Clock::stepped(chrono::DateTime::UNIX_EPOCH)
}

async fn talk(network: &Network, from: &str, to: SocketAddr) -> Result<String, Refusal> {
    let mut io = network.connect(ip(from), to).await?;
    io.write_all(b"hello").await.unwrap();
    io.shutdown().await.unwrap();
    let mut said = String::new();
    io.read_to_string(&mut said).await.unwrap();
    Ok(said)
}

/// Steps the clock from one sleeper to the next until `future` is done.
async fn run<T: Send + 'static>(
    clock: &Clock,
    future: impl std::future::Future<Output = T> + Send + 'static,
) -> T {
    let task = tokio::spawn(future);
    while !task.is_finished() {
        tokio::task::yield_now().await;
        if let Some(wait) = clock.next_wake() {
            clock.advance(wait);
        }
    }
    task.await.unwrap()
}

#[tokio::test]
async fn who_listens_is_reached_directly_and_through_a_route() {
    let network = network(&stepped());
    assert_eq!(talk(&network, POD, at(SERVER, 80)).await.unwrap(), "10.244.1.2 hello");
    assert_eq!(talk(&network, POD, at(SERVICE, 80)).await.unwrap(), "172.18.0.2 hello");
    assert_eq!(talk(&network, SERVER, at("127.0.0.1", 80)).await.unwrap(), "10.244.1.3 hello");
}

#[tokio::test]
async fn who_cannot_be_reached_is_told_so_when_a_kernel_says_it() {
    let (clock, refused) = (stepped(), |obstacle, took| Err(Refusal { obstacle, took }));
    for (from, to, wanted) in [
        (POD, at(SERVER, 81), refused(Obstacle::Refused, Duration::ZERO)),
        (POD, at(SERVICE, 81), refused(Obstacle::Refused, Duration::ZERO)),
        (POD, at("10.244.1.4", 80), refused(Obstacle::Unreachable, UNREACHABLE_AFTER)),
        // An address is translated once.
        (POD, at(CIRCLE, 80), refused(Obstacle::Unreachable, UNREACHABLE_AFTER)),
        (KEPT_OUT, at(SERVER, 80), refused(Obstacle::TimedOut, CONNECT_TIMEOUT)),
        // In the node's name he is still himself.
        (KEPT_OUT, at(SERVICE, 80), refused(Obstacle::TimedOut, CONNECT_TIMEOUT)),
    ] {
        let network = network(&clock);
        let said = run(&clock, async move { talk(&network, from, to).await }).await;
        assert_eq!(said, wanted, "{from} {to}");
    }
}

#[tokio::test]
async fn a_datagram_is_answered_or_not() {
    let (clock, hello) = (stepped(), Bytes::from_static(b"hello"));
    let network = network(&clock);
    let ask = |from: &str, port, datagram: &Bytes| network.ask(ip(from), at(SERVER, port), datagram.clone());
    assert_eq!(ask(POD, 53, &hello).await, Ok(Some(hello.clone())));
    assert_eq!(ask(POD, 54, &hello).await, Ok(None));
    assert_eq!(ask(KEPT_OUT, 53, &hello).await, Ok(None));
    let took = Duration::ZERO;
    assert_eq!(ask(POD, 55, &hello).await, Err(Refusal { obstacle: Obstacle::Refused, took }));
    let (largest, larger) = (vec![0; MAX_DATAGRAM_BYTES].into(), vec![0; MAX_DATAGRAM_BYTES + 1].into());
    assert_eq!(ask(POD, 53, &largest).await, Ok(Some(largest.clone())));
    assert_eq!(ask(POD, 53, &larger).await, Ok(None));
}

#[tokio::test]
async fn a_name_with_many_addresses_has_all_of_them() {
    let network = network(&stepped());
    let conf = ResolvConf::parse(&format!("nameserver {SERVER}\n"));
    let answer = network.look_up(ip(POD), &conf, "many", RecordType::A).await.unwrap();
    assert!(!answer.is_truncated);
    assert_eq!(answer.answers.len(), 50);
}

#[tokio::test]
async fn bad_weather_is_between_the_sides_that_it_names() {
    let clock = stepped();
    let network = network(&clock);
    let side = |text: &str| vec![AddressRange::parse(text).unwrap()];
    let sides = || Disturbance { one: side(SERVER), other: side("10.244.1.2/32"), ..Disturbance::default() };
    for (rule, wanted) in [
        (Disturbance { is_refused: true, ..sides() }, Obstacle::Refused),
        (Disturbance { is_partition: true, ..sides() }, Obstacle::TimedOut),
        (Disturbance { loss: 1.0, ..sides() }, Obstacle::TimedOut),
    ] {
        network.disturb(vec![rule.clone()]).unwrap();
        let asking = network.clone();
        let said = run(&clock, async move { talk(&asking, POD, at(SERVER, 80)).await }).await;
        assert_eq!(said.unwrap_err().obstacle, wanted, "{rule:?}");
        assert!(talk(&network, "10.244.1.5", at(SERVER, 80)).await.is_ok(), "{rule:?}");
    }
    network.disturb(vec![]).unwrap();
    assert!(talk(&network, POD, at(SERVER, 80)).await.is_ok());
    let rules = vec![Disturbance::default(); MAX_RULES + 1];
    assert_eq!(network.disturb(rules), Err(TooManyRules(MAX_RULES + 1)));
}

#[tokio::test]
async fn latency_is_on_the_clusters_clock() {
    let clock = stepped();
    let network = network(&clock);
    let latency = Duration::from_millis(50);
    network.disturb(vec![Disturbance { latency, ..Disturbance::default() }]).unwrap();
    assert_eq!(network.ping(ip(POD), ip("10.244.1.4")).await, Err(Obstacle::Unreachable));
    let asking = network.clone();
    let pinged = run(&clock, async move { asking.ping(ip(POD), ip(SERVER)).await }).await;
    assert_eq!(pinged, Ok(latency * 2));
    let begun = clock.elapsed();
    let said = run(&clock, async move { talk(&network, POD, at(SERVER, 80)).await }).await;
    assert_eq!(said.unwrap(), "10.244.1.2 hello");
    assert!(clock.elapsed() - begun >= latency * 4, "{:?}", clock.elapsed());
}

#[tokio::test]
async fn connections_beyond_the_bound_are_dropped_and_come_back_when_others_end() {
    let clock = stepped();
    let network = network(&clock);
    let mut open = vec![];
    for _ in 0..MAX_CONNECTIONS {
        open.push(network.connect(ip(POD), at(SERVER, 80)).await.unwrap());
    }
    let asking = network.clone();
    let said = run(&clock, async move { talk(&asking, POD, at(SERVER, 80)).await }).await;
    assert_eq!(said.unwrap_err().obstacle, Obstacle::TimedOut);
    drop(open);
    assert_eq!(talk_again(&network, &clock).await, "10.244.1.2 hello");
    network.close();
    let asking = network.clone();
    let said = run(&clock, async move { talk(&asking, POD, at(SERVER, 80)).await }).await;
    assert_eq!(said.unwrap_err().obstacle, Obstacle::Unreachable);
}

/// The others end when their tasks have a turn, which is soon.
async fn talk_again(network: &Network, clock: &Clock) -> String {
    loop {
        tokio::task::yield_now().await;
        let asking = network.clone();
        if let Ok(said) = run(clock, async move { talk(&asking, POD, at(SERVER, 80)).await }).await {
            return said;
        }
    }
}
