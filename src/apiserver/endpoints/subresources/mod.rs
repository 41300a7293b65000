//! What hangs below the path of an object and is no part of it (`registry/core/pod/rest`,
//! `registry/core/serviceaccount/storage`): a binding, an eviction, a token, streams into a container.
//!
//! In comes what a verb gets; out goes what a verb answers. `status`, `scale` and other parts of an object
//! are read and written by the verbs themselves.

pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod kubelet_server;
pub(crate) mod rollback;
pub(crate) mod token;

mod asked_streams;
mod attach;
mod command_streams;
pub(crate) mod connect;
mod exec;
mod html_links;
mod idle;
pub(crate) mod log;
mod node_proxy;
mod pass_on;
mod port_channels;
mod port_forward;
mod proxy;
mod spdy_channels;
mod streams;
mod tunnel;
