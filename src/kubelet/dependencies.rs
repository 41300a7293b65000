//! What a kubelet is made of and works with (`kubelet.Dependencies`), shared by its loops.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::container_gc::ContainerGarbage;
use super::container_runtime::services::RuntimeService;
use super::counted::{KubeletCounts, TurnKind};
use super::credential_provider::ImageAccess;
use super::device_plugins::DevicePlugins;
use super::node_config::{Boots, NodeConfig};
use super::node_state::NodeState;
use super::played::PlayedPods;
use super::players::Players;
use super::volume_manager::claimed_files::ClaimedFiles;
use super::volume_manager::host_files::HostFiles;
use super::volume_manager::in_use::VolumesInUse;
use apimachinery::object::Object;
use apimachinery::time::Time;
use client_go::component::ComponentContext;
use component_base::slis::HealthSlis;
use network::Network;
use stages::{CelHost, Governed};

/// What the workers of one node share.
pub struct NodeRuntime {
    /// What runs their containers.
    pub runtime: Arc<dyn RuntimeService>,
    /// The node's own addresses, that of its pods' own IP family first.
    pub host_ips: Vec<String>,
    /// The name server of its pods (`--cluster-dns`).
    pub cluster_dns: String,
    /// What it has for pods.
    pub allocatable: BTreeMap<String, String>,
    /// How much memory its machine has, in bytes.
    pub memory_capacity: i64,
    /// What its pods share of its files.
    pub host_files: HostFiles,
    /// What is in the volumes behind claims, whichever node has them.
    pub claimed_files: ClaimedFiles,
    /// The volumes that its pods use.
    pub volumes: VolumesInUse,
    /// The starts of its machine: what ran before the last one runs no more.
    pub boots: Boots,
    /// What its pods are reached on, and reach others.
    pub network: Network,
    /// Which images are not for every pod.
    pub images: ImageAccess,
    /// The longest pause before a container is started again.
    pub longest_restart: Duration,
    /// The devices of its extended resources.
    pub devices: DevicePlugins,
}

/// What the parts of one kubelet share. Only the state of the node in it changes.
pub(crate) struct Dependencies {
    /// Client, informers, recorder, clock: its own.
    pub(crate) context: ComponentContext,
    /// What its node is like.
    pub(crate) config: NodeConfig,
    /// Its own addresses, as every connection asks for them.
    pub(crate) addresses: Vec<IpAddr>,
    /// What its pod workers share.
    pub(crate) node: NodeRuntime,
    /// What becomes of its node.
    pub(crate) state: NodeState,
    /// Where scripts are played.
    pub(crate) players: Players,
    /// The addresses of pods that stages play.
    pub(crate) played: PlayedPods,
    /// What it counts of itself.
    pub(crate) counted: KubeletCounts,
    /// What came of asking how it is.
    pub(crate) slis: HealthSlis,
    /// Which of what has ended is gone.
    pub(crate) garbage: ContainerGarbage,
}

impl Dependencies {
    /// A pod has had its turn that was due then.
    pub(crate) fn note_sync(&self, kind: TurnKind, due: Time) {
        let took = self.context.clock.now() - due;
        self.counted.synced(kind, took.to_std().unwrap_or_default());
    }

    /// The name of its node.
    pub(crate) fn node_name(&self) -> &str {
        &self.config.name
    }

    /// What its pods are reached on, and reach others.
    pub(crate) fn network(&self) -> &Network {
        &self.node.network
    }

    /// Whether stages play a pod or node, and this kubelet does not. Where there are no stages for their kind
    /// nothing is looked at.
    pub(crate) fn is_played(&self, what: Governed, object: &Object) -> bool {
        let (clock, entropy) = (&self.context.clock, &self.context.entropy);
        self.config.book.governs(what, object, || CelHost { now: clock.now(), entropy: entropy.clone() })
    }
}
