//! kube-apiserver: the one way in. A request comes in at `server` (or straight from a component in this
//! process), walks down the handler chain, an endpoint, admission, the registry and the storage, and the
//! answer goes back up.
//!
//! It never knows a client, a controller or a kubelet; where it must ask a kubelet (logs), it is handed a
//! lookup.

#![warn(missing_docs, unreachable_pub)]

pub mod server;

pub mod config;
pub mod handler_chain;
pub mod options;

pub mod audit;
pub mod audit_context;
pub mod dynamic_file_content;
pub mod kubelet_client;
pub use endpoints::subresources::kubelet_server::serve as serve_kubelet;
pub mod kubelet_options;
pub mod metrics;
pub mod post_start_hooks;
pub mod request;
pub mod shutdown;
pub mod traffic;

pub mod authorizer;
pub mod beside;

pub mod authentication;
pub mod authorization;
pub mod filters;
pub mod flow_control;

pub mod endpoints;

pub mod crd_handler;

pub mod admission;
pub mod aggregator;
pub mod registry;
pub mod storage;

pub mod webhook;
