//! The ports of kubelets in a process of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use super::ApartError;
use super::pages;
use crate::cluster::kubelet_gate::KubeletGate;
use apimachinery::wire::{ApiRequest, ApiService};
use apiserver::server::Server;
use pki::Identity;

/// Everything that the ports of one process have in common.
pub(super) struct KubeletPorts {
    pub(super) gate: KubeletGate,
    /// Whose clients are believed, PEM.
    pub(super) authority: String,
    pub(super) identity: Identity,
}

impl KubeletPorts {
    /// Opens the port of one node; port 0 takes a free one.
    ///
    /// # Errors
    /// It is taken.
    pub(super) async fn open(&self, node: &str, address: SocketAddr) -> Result<Server, ApartError> {
        let (gate, node) = (self.gate.clone(), Arc::<str>::from(node));
        let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
            let (gate, node) = (gate.clone(), node.clone());
            async move { Ok(gate.answer(request, &node).await) }
        }));
        pages::listen(address, self.identity.clone(), &self.authority, service).await
    }
}
