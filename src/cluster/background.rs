//! What goes on in a cluster beside the requests, and is of no component.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::config::Config;
use super::inside::Inside;
use super::service_families::advertised;
use super::{
    claimed_files, fault_objects, identity_lease, loads, network_faults, node_objects, otlp, service_repair,
    stage_objects, system_objects,
};
use apiserver::storage::ByteStore;
use apiserver::storage::encryption::Encryption;

/// What goes on from the start.
pub(super) fn begin(kv: &ByteStore, config: &Config, encryption: &Encryption) -> JoinSet<()> {
    let (mut background, clock) = (JoinSet::new(), &config.clock);
    // What is only shown keeps its history.
    let compaction_interval =
        if config.read_only { Duration::ZERO } else { config.apiserver.etcd.compaction_interval };
    background.spawn(kv.clone().compact_every(compaction_interval, clock.clone()));
    encryption.follow(clock).map(|following| background.spawn(clock.tracked(following)));
    background
}

/// What was stored before the start may lack something; where servers share an etcd that is looked at anyway.
pub(super) fn repair_stored(background: &mut JoinSet<()>, inside: &Arc<Inside>) {
    if !inside.kv.is_shared() {
        background.spawn(service_repair::following(inside.clone()));
    }
}

/// What follows objects of the user's once the cluster is ready.
pub(super) fn follow_objects(
    background: &mut JoinSet<()>,
    inside: &Arc<Inside>,
    address: Option<SocketAddr>,
) {
    if let Some(endpoint) = inside.config.otlp_endpoint.clone() {
        background.spawn(otlp::send(inside.clone(), endpoint));
    }
    if inside.config.looks_after_itself {
        let bound = address;
        let address = bound.and_then(|bound| advertised(&inside.config, bound));
        let is_shared = inside.kv.is_shared();
        // Among others a server is told from them by its address.
        let told_by = if is_shared { address } else { bound };
        if let Some(told_by) = told_by {
            background.spawn(identity_lease::following(inside.clone(), told_by));
        }
        if is_shared && address.is_some() {
            background.spawn(service_repair::following(inside.clone()));
        }
        background.spawn(system_objects::following(inside.clone(), address));
    }
    if inside.config.looks_after_itself && inside.config.components.kubelets {
        background.spawn(node_objects::following(inside.clone()));
        background.spawn(stage_objects::following(inside.clone()));
        background.spawn(loads::following(inside.clone()));
        background.spawn(claimed_files::following(inside.clone()));
    }
    if inside.config.looks_after_itself {
        background.spawn(network_faults::following(inside.clone()));
    }
    if inside.config.fault_objects {
        background.spawn(fault_objects::follow(inside.clone()));
    }
}
