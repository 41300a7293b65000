//! Components in processes of their own: each asks an apiserver that is elsewhere, as its kubeconfig says.
//!
//! [`remote`] is the way there, an [`ApiService`](apimachinery::wire::ApiService) as that of an apiserver in
//! this process; [`credentials`] says in whose name. [`component`] makes the components by the code that
//! makes those of a whole cluster; what these share there beside the apiserver they go without. [`pages`]
//! and [`kubelet_port`] are where others reach them, and [`delegated`] asks the apiserver who may.

pub(crate) mod remote;

mod credentials;

pub(crate) use credentials::SpeaksAs;

pub(crate) mod component;

mod custom_kinds;

pub(crate) mod pages;

pub(crate) mod kubelet_port;
mod own_nodes;

pub(crate) mod delegated;

/// Why components cannot run here. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ApartError(pub(crate) String);
