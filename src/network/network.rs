//! `Network`: whoever wants to reach an address asks here (the kernel's `connect` and `sendto`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::passage::{Firewall, Hosts, Obstacle, Passage, Protocol, Route, Routing};
use crate::pipe::connection;
use crate::relay::{Voyage, relay};
use crate::weather::{Disturbance, Mishaps, TooManyRules, Weather};
use clock::Clock;
use entropy::Entropy;
use sync::Mutex;

/// So many connections may be open at once; what comes beyond is dropped, as by a full conntrack table.
pub const MAX_CONNECTIONS: usize = 16_384;
/// The largest datagram (65,535 less the headers); a larger one is lost.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;
/// How long a kernel goes on asking who does not answer (`tcp_syn_retries` 6).
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(127);
/// How long a kernel looks for a neighbour before it says that there is none.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(3);
/// When a first packet that was lost is sent again; twice as long each further time.
const SYN_RETRY: Duration = Duration::from_secs(1);
/// So often, then it is given up.
const SYN_RETRIES: u32 = 6;
/// Linux' range of ports for who asks (`ip_local_port_range`).
const FIRST_PORT: u32 = 32_768;
const PORTS: u32 = 28_232;

/// Why nobody answers, and how long it took to find out, on the cluster's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What stood in the way.
    pub obstacle: Obstacle,
    /// How long it took.
    pub took: Duration,
}

/// What a network is made of.
pub struct NetworkParts {
    /// Who is at an address.
    pub hosts: Arc<dyn Hosts>,
    /// Where virtual addresses lead.
    pub routes: Arc<dyn Routing>,
    /// Who may ask whom.
    pub firewall: Arc<dyn Firewall>,
    /// The cluster's.
    pub clock: Clock,
    /// The cluster's.
    pub entropy: Entropy,
}

/// The network of one cluster. Cloning shares it.
#[derive(Clone)]
pub struct Network(Arc<Wires>);

struct Wires {
    parts: NetworkParts,
    weather: Weather,
    next_port: AtomicU32,
    /// How often what is known of the network has become another.
    changes: watch::Sender<u64>,
    /// Who serves connections. Bound: [`MAX_CONNECTIONS`]; none once it was closed.
    open: Mutex<Option<JoinSet<()>>>,
}

impl Network {
    /// Of these parts, without connections.
    pub fn new(parts: NetworkParts) -> Network {
        let open = Mutex::new(Some(JoinSet::new()));
        let (weather, next_port, changes) = Default::default();
        Network(Arc::new(Wires { parts, weather, next_port, changes, open }))
    }

    /// One on which nobody is.
    pub fn nobody(clock: Clock, entropy: Entropy) -> Network {
        let nobody = Arc::new(());
        let (hosts, routes, firewall) = (nobody.clone(), nobody.clone(), nobody);
        Network::new(NetworkParts { hosts, routes, firewall, clock, entropy })
    }

    /// What is wrong from now on, instead of what was before. Connections that are open stay as they are.
    ///
    /// # Errors
    /// That there are more rules than [`crate::weather::MAX_RULES`].
    pub fn disturb(&self, rules: Vec<Disturbance>) -> Result<(), TooManyRules> {
        self.0.weather.set(rules)?;
        self.stir();
        Ok(())
    }

    /// What the cluster's faults have made wrong, instead of what they had before, beside
    /// [`Network::disturb`].
    ///
    /// # Errors
    /// That there are more rules than [`crate::weather::MAX_RULES`].
    pub fn disturb_by_faults(&self, rules: Vec<Disturbance>) -> Result<(), TooManyRules> {
        self.0.weather.set_of_faults(rules)?;
        self.stir();
        Ok(())
    }

    /// Whoever remembers what he was answered is to ask again: somebody answers otherwise from now on.
    pub fn stir(&self) {
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// Told of each [`Network::disturb`] and [`Network::stir`] from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// How often something has changed ([`Network::changes`]).
    pub fn count_changes(&self) -> u64 {
        *self.0.changes.borrow()
    }

    /// Whether nothing is wrong between two addresses.
    pub fn is_fair(&self, one: IpAddr, other: IpAddr) -> bool {
        one == other || self.0.weather.between(one, other).is_fair()
    }

    /// Connects over TCP. Whoever has less time than [`CONNECT_TIMEOUT`] stops waiting.
    ///
    /// # Errors
    /// [`Refusal`], when a kernel would say so.
    pub async fn connect(&self, from: IpAddr, to: SocketAddr) -> Result<DuplexStream, Refusal> {
        let begun = self.0.parts.clock.elapsed();
        match self.try_connect(from, to).await {
            Ok(stream) => Ok(stream),
            Err(obstacle) => Err(self.refusal(obstacle, begun).await),
        }
    }

    /// As [`Network::connect`], whoever listens there: whether the first packet arrives.
    ///
    /// # Errors
    /// [`Refusal`], when a kernel would say so.
    pub async fn reach(&self, from: IpAddr, to: SocketAddr) -> Result<(), Refusal> {
        let begun = self.0.parts.clock.elapsed();
        match self.try_reach(from, to).await {
            Ok(()) => Ok(()),
            Err(obstacle) => Err(self.refusal(obstacle, begun).await),
        }
    }

    /// Sends a datagram over UDP, and says what is answered; nothing when nothing ever is.
    ///
    /// # Errors
    /// [`Refusal`]: that nobody listens there, or nobody has that address.
    pub async fn ask(&self, from: IpAddr, to: SocketAddr, datagram: Bytes) -> Result<Option<Bytes>, Refusal> {
        let begun = self.0.parts.clock.elapsed();
        match self.try_ask(from, to, datagram).await {
            Ok(answer) => Ok(answer),
            // Who sends a datagram is not told that it did not arrive.
            Err(Obstacle::TimedOut) => Ok(None),
            Err(obstacle) => Err(self.refusal(obstacle, begun).await),
        }
    }

    /// Sends an echo request (ping), and says how long the answer was on its way.
    ///
    /// # Errors
    /// That nothing comes back, or nobody has that address. It is said at once: how long somebody waits for
    /// an answer is his own business.
    pub async fn ping(&self, from: IpAddr, to: IpAddr) -> Result<Duration, Obstacle> {
        let begun = self.0.parts.clock.elapsed();
        let from = self.source(from, to)?;
        let conditions = self.0.weather.between(from, to);
        if conditions.is_partition || conditions.losses(&self.0.parts.entropy, 1) > 0 {
            return Err(Obstacle::TimedOut);
        }
        if !self.0.parts.hosts.is_there(to).await {
            return Err(Obstacle::Unreachable);
        }
        self.0.parts.clock.sleep(conditions.round_trip()).await;
        Ok(self.0.parts.clock.elapsed().saturating_sub(begun))
    }

    /// The cluster's time.
    pub(crate) fn clock(&self) -> &Clock {
        &self.0.parts.clock
    }

    /// Ends all connections; from now on nobody can be reached.
    pub fn close(&self) {
        drop(self.0.open.lock().take());
    }

    /// Who asks does so in his address of the IP family of whom he asks.
    fn source(&self, from: IpAddr, to: IpAddr) -> Result<IpAddr, Obstacle> {
        if from.is_ipv4() == to.is_ipv4() {
            return Ok(from);
        }
        self.0.parts.hosts.address_like(from, to).ok_or(Obstacle::Unreachable)
    }

    /// The port of who asks is one after the other; loopback is the asker's own.
    fn passage(&self, from: IpAddr, to: SocketAddr, protocol: Protocol) -> Result<Passage, Obstacle> {
        let to = if to.ip().is_loopback() { SocketAddr::new(from, to.port()) } else { to };
        let from = self.source(from, to.ip())?;
        let port = FIRST_PORT + self.0.next_port.fetch_add(1, Ordering::Relaxed) % PORTS;
        let from = SocketAddr::new(from, u16::try_from(port).unwrap_or(u16::MAX));
        Ok(Passage { from, to, protocol })
    }

    async fn try_reach(&self, from: IpAddr, to: SocketAddr) -> Result<(), Obstacle> {
        let (_, conditions) = self.way(self.passage(from, to, Protocol::Tcp)?).await?;
        self.first_packet(conditions).await
    }

    async fn try_connect(&self, from: IpAddr, to: SocketAddr) -> Result<DuplexStream, Obstacle> {
        let (passage, conditions) = self.way(self.passage(from, to, Protocol::Tcp)?).await?;
        self.first_packet(conditions).await?;
        let accept = self.0.parts.hosts.accept(passage).await?;
        let (client, server) = connection();
        let serving = accept(server, passage.from);
        if conditions.is_fair() {
            self.spawn(serving)?;
            return Ok(client);
        }
        let (near, far) = connection();
        let journey = self.journey(conditions);
        self.spawn(Box::pin(async move {
            tokio::join!(serving, relay(far, client, journey));
        }))?;
        Ok(near)
    }

    async fn try_ask(
        &self,
        from: IpAddr,
        to: SocketAddr,
        datagram: Bytes,
    ) -> Result<Option<Bytes>, Obstacle> {
        let (passage, conditions) = self.way(self.passage(from, to, Protocol::Udp)?).await?;
        let is_lost = conditions.losses(&self.0.parts.entropy, 1) > 0;
        if is_lost || datagram.len() > MAX_DATAGRAM_BYTES {
            return Ok(None);
        }
        let answer = self.0.parts.hosts.reply(passage, datagram).await?;
        if !conditions.is_fair() {
            self.0.parts.clock.sleep(conditions.round_trip()).await;
        }
        Ok(answer.filter(|answer| answer.len() <= MAX_DATAGRAM_BYTES))
    }

    /// Where a passage leads, and through what weather. What stays within a host passes nobody; but a port of
    /// the host may lead elsewhere for its own processes, too.
    async fn way(&self, asked: Passage) -> Result<(Passage, Mishaps), Obstacle> {
        let passage = self.routed(asked).await?;
        if passage.from.ip() == passage.to.ip() {
            return Ok((passage, Mishaps::default()));
        }
        let conditions = self.0.weather.between(passage.from.ip(), passage.to.ip());
        if conditions.is_partition {
            return Err(Obstacle::TimedOut);
        }
        if !self.0.parts.firewall.lets_through(passage, asked.from.ip()).await {
            return Err(Obstacle::TimedOut);
        }
        if conditions.is_refused {
            return Err(Obstacle::Refused);
        }
        Ok((passage, conditions))
    }

    async fn routed(&self, asked: Passage) -> Result<Passage, Obstacle> {
        match self.0.parts.routes.route(asked).await {
            Route::Direct => Ok(asked),
            Route::Nowhere(obstacle) => Err(obstacle),
            Route::To { to, from } => {
                let passage = Passage { to, from: SocketAddr::new(from, asked.from.port()), ..asked };
                // It is translated once: what is virtual still has no host.
                Ok(passage)
            }
        }
    }

    /// The handshake goes there and back.
    async fn first_packet(&self, conditions: Mishaps) -> Result<(), Obstacle> {
        if conditions.is_fair() {
            return Ok(());
        }
        let losses = conditions.losses(&self.0.parts.entropy, SYN_RETRIES + 1);
        if losses > SYN_RETRIES {
            return Err(Obstacle::TimedOut);
        }
        let late = SYN_RETRY * ((1 << losses) - 1);
        self.0.parts.clock.sleep(conditions.round_trip() + late).await;
        Ok(())
    }

    fn journey(&self, conditions: Mishaps) -> Voyage {
        let NetworkParts { clock, entropy, .. } = &self.0.parts;
        Voyage { conditions, clock: clock.clone(), entropy: entropy.clone() }
    }

    fn spawn(&self, serving: BoxFuture<'static, ()>) -> Result<(), Obstacle> {
        let mut open = self.0.open.lock();
        let open = open.as_mut().ok_or(Obstacle::Unreachable)?;
        while open.try_join_next().is_some() {}
        if open.len() >= MAX_CONNECTIONS {
            return Err(Obstacle::TimedOut);
        }
        open.spawn(self.0.parts.clock.tracked(serving));
        Ok(())
    }

    /// Waits as long as a kernel does.
    async fn refusal(&self, obstacle: Obstacle, begun: Duration) -> Refusal {
        let clock = &self.0.parts.clock;
        let after = match obstacle {
            Obstacle::Refused => Duration::ZERO,
            Obstacle::Unreachable => UNREACHABLE_AFTER,
            Obstacle::TimedOut => CONNECT_TIMEOUT,
        };
        if !after.is_zero() {
            clock.sleep_until(begun + after).await;
        }
        Refusal { obstacle, took: clock.elapsed().saturating_sub(begun) }
    }
}
