//! `StartError`: why a cluster did not start.

use std::net::SocketAddr;

use super::etcd_api::EtcdApiError;
use super::etcd_store_error::EtcdStoreError;
use super::manifests;
use super::snapshot::SnapshotError;
use apimachinery::status::Status;
use apiserver::authentication;
use apiserver::config::ConfigError;
use apiserver::kubelet_options::KubeletFileError;
use kubelet::node_refusal::NodeRefusal;

/// Why a cluster did not start. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data dir.
    #[error(transparent)]
    Store(#[from] etcd::StoreError),
    /// The certificates.
    #[error(transparent)]
    Pki(#[from] pki::PkiError),
    /// The port.
    #[error("cannot listen on {0}: {1}; choose another with --listen (port 0 takes a free one)")]
    Listen(SocketAddr, std::io::Error),
    /// A port of the host for a Service.
    #[error(
        "cannot publish {0}: {1} cannot be listened on: {2}; choose another port before the colon (port 0 takes \
         a free one)"
    )]
    Publish(String, SocketAddr, std::io::Error),
    /// A port of a component.
    #[error("cannot open the port of {0}: {1}")]
    ComponentPort(&'static str, String),
    /// Without TLS everybody who reaches the port is an administrator.
    #[error(
        "--listen {0} with --insecure-http lets everybody in as an administrator; leave out --insecure-http, \
         or use 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The Service `kubernetes` would have an address of a family that the server has none of.
    #[error(
        "service IP family {0:?} must match public address family {1:?}; choose another --listen, or put a range \
         of its family first in --service-cluster-ip-range"
    )]
    ServiceFamily(String, String),
    /// etcd's API.
    #[error(transparent)]
    Etcd(#[from] EtcdApiError),
    /// The etcd in which the objects are.
    #[error(transparent)]
    EtcdStore(#[from] EtcdStoreError),
    /// The flags of the apiserver.
    #[error(transparent)]
    Apiserver(#[from] ConfigError),
    /// The flags of kubelets in other processes.
    #[error(transparent)]
    Kubelets(#[from] KubeletFileError),
    /// The flags of authentication.
    #[error(transparent)]
    Authentication(#[from] authentication::AuthenticationConfigError),
    /// The objects that every cluster starts with.
    #[error("cannot set up the cluster: {0}")]
    Bootstrap(#[from] manifests::Error),
    /// The objects that every cluster starts with, as the server itself refused them.
    #[error("cannot set up the cluster: {0}")]
    Refused(#[from] Status),
    /// The stages.
    #[error("{0}")]
    Stages(String),
    /// What it was to begin with.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl From<NodeRefusal> for StartError {
    fn from(refusal: NodeRefusal) -> StartError {
        StartError::Stages(refusal.0)
    }
}
