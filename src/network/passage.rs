//! Who asks whom, and the parts of a network that are given to it: hosts, routes and the firewall.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::io::DuplexStream;

/// A connection that somebody wants, or a datagram that somebody sends (netfilter's tuple).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Who asks.
    pub from: SocketAddr,
    /// Who is asked.
    pub to: SocketAddr,
    /// How it is sent.
    pub protocol: Protocol,
}

/// A protocol above IP (`v1.Protocol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Connections are TCP.
    Tcp,
    /// Datagrams are UDP.
    Udp,
}

/// What stands between who asks and who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Nobody listens there (`ECONNREFUSED`).
    Refused,
    /// Nothing comes back (`ETIMEDOUT`).
    TimedOut,
    /// Nobody has that address (`EHOSTUNREACH`).
    Unreachable,
}

/// Serves one connection until its end: the connection, and who asks.
pub type Accept = Arc<dyn Fn(DuplexStream, SocketAddr) -> BoxFuture<'static, ()> + Send + Sync>;

/// Who is at an address. It is asked for each connection, so that who is never asked costs nothing.
pub trait Hosts: Send + Sync {
    /// Who takes connections at `passage.to`.
    ///
    /// # Errors
    /// Why nobody does.
    fn accept(&self, passage: Passage) -> BoxFuture<'_, Result<Accept, Obstacle>>;

    /// What `passage.to` answers to a datagram; nothing where it answers nothing.
    ///
    /// # Errors
    /// Why nobody takes it.
    fn reply(&self, passage: Passage, datagram: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, Obstacle>>;

    /// Whether anybody has an address: who answers a ping.
    fn is_there(&self, address: IpAddr) -> BoxFuture<'_, bool>;

    /// The address that whoever is at `own` has of the IP family of `like`, which is not that of `own`:
    /// nobody reaches an address of a family of which he has none himself.
    fn address_like(&self, _own: IpAddr, _like: IpAddr) -> Option<IpAddr> {
        None
    }
}

/// Where a passage leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Where it says.
    Direct,
    /// Somewhere else, perhaps in the name of somebody else: translated once, as netfilter does. An address
    /// that would be translated again leads nowhere instead, so that no circle is one.
    To {
        /// Whom it reaches.
        to: SocketAddr,
        /// Who that one is told asks.
        from: IpAddr,
    },
    /// To nobody.
    Nowhere(Obstacle),
}

/// Virtual addresses, and where they lead (kube-proxy's place).
pub trait Routing: Send + Sync {
    /// Where a passage leads.
    fn route(&self, passage: Passage) -> BoxFuture<'_, Route>;
}

/// Who may ask whom (a CNI plugin's place).
pub trait Firewall: Send + Sync {
    /// Whether a passage is let through, after routes have been followed. What is not is dropped silently.
    /// `asker` is who began it, in whosever name it arrives: what leaves him is judged as his.
    fn lets_through(&self, passage: Passage, asker: IpAddr) -> BoxFuture<'_, bool>;
}

/// No virtual addresses.
impl Routing for () {
    fn route(&self, _: Passage) -> BoxFuture<'_, Route> {
        Box::pin(std::future::ready(Route::Direct))
    }
}

/// Everybody may.
impl Firewall for () {
    fn lets_through(&self, _: Passage, _: IpAddr) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

/// Nobody is anywhere.
impl Hosts for () {
    fn accept(&self, _: Passage) -> BoxFuture<'_, Result<Accept, Obstacle>> {
        Box::pin(std::future::ready(Err(Obstacle::Unreachable)))
    }

    fn reply(&self, _: Passage, _: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, Obstacle>> {
        Box::pin(std::future::ready(Err(Obstacle::Unreachable)))
    }

    fn is_there(&self, _: IpAddr) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }
}
