//! network: connections between simulated pods, and to them. No socket is opened and no name resolved: a
//! connection is two ends of a pipe in memory.
//!
//! Comes in: who asks whom; at composition who is at which address, where Services lead, what policies keep
//! out. Goes out: bytes, as over TCP and UDP, or why not, after the time that a kernel takes to say so. It
//! must not know Kubernetes: no pods, no Services, addresses alone.

#![warn(missing_docs)]

pub mod address_range;
pub mod any_client_certificate;
pub mod dns;
pub mod passage;
pub mod pipe;
pub mod plain_http;
pub mod rewound;
pub mod weather;

mod relay;

pub mod network;
pub mod resolver;

pub mod grpc;
pub mod http_client;
pub mod http_server;
pub mod tls;
pub mod websocket_frames;

#[cfg(test)]
mod dns_test;
#[cfg(test)]
mod network_test;
#[cfg(test)]
mod tests;

pub use network::{Network, Refusal};
pub use passage::{Accept, Firewall, Hosts, Obstacle, Passage, Protocol, Route, Routing};
pub use pipe::{WINDOW_BYTES, connection};
