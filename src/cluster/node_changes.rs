//! Nodes that are added, removed, stopped, started again or unwell while the cluster runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::control_plane_pods::ControlPlanePods;
use super::inside::Inside;
use super::node_register::NodeRegister;
use super::start_error::StartError;
use super::taken_addresses::TakenAddresses;
use super::{ready, system_pods};
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::core::node::NODES;
use apis::views::node::Node;
use client_go::client::Client;
use futures::{StreamExt, TryStreamExt, stream};
use kubelet::eviction::ShutdownGrace;
use kubelet::kubelet::Kubelet;
use kubelet::node_config::NodeConfig;
use kubelet::node_group::NodeGroup;
use kubelet::node_refusal::NodeRefusal;

/// How long is waited for new nodes to be ready, in real time; then they are answered all the same.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// So many Nodes are made at the same time.
const CLAIMS_AT_ONCE: usize = 16;

impl Inside {
    /// Adds the nodes of a group, whose objects the client creates.
    pub(super) async fn add_nodes(&self, client: &Client, group: &NodeGroup) -> Result<Vec<String>, Status> {
        let made = self.running.nodes.reserve(group).map_err(refused)?;
        let names: BTreeSet<String> = made.iter().map(|node| node.name.clone()).collect();
        for (at, node) in made.iter().enumerate() {
            if let Err(status) = client.create(&NODES, "", node.object()).await {
                made[at..].iter().for_each(|node| drop(self.running.nodes.forget(&node.name)));
                return Err(status);
            }
            self.start_node(&node.name)?;
        }
        let all_ready = ready::nodes(client, &names);
        if let Ok(waited) = self.for_handles.time.real.timeout(READY_WITHIN, all_ready).await {
            waited?;
        }
        Ok(names.into_iter().collect())
    }

    /// Ends the kubelet of a node, and deletes the node.
    pub(super) async fn remove_node(&self, client: &Client, name: &str) -> Result<(), Status> {
        self.check_node(name)?;
        match client.delete(&NODES, "", name, &DeleteOptions::default()).await {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
        self.running.forget(name);
        Ok(())
    }

    /// Its kubelet ends; the node stays.
    pub(super) fn stop_node(&self, name: &str) -> Result<(), Status> {
        self.check_node(name)?;
        self.running.stop(&kubelet_of(name)).map(drop).map_err(|error| Status::internal(error.to_string()))
    }

    /// Its kubelet runs again.
    pub(super) fn start_node(&self, name: &str) -> Result<(), Status> {
        self.check_node(name)?;
        self.running.start(&kubelet_of(name)).map_err(|error| Status::internal(error.to_string()))
    }

    /// The machine of a node is started again: what ran there is gone, and runs again as it may.
    pub(super) fn reboot_node(&self, name: &str) -> Result<(), Status> {
        self.check_node(name)?;
        self.running.nodes.reboot(name, self.clock.now());
        self.stop_node(name)?;
        self.start_node(name)
    }

    /// The machine of a node is switched off: its pods end in order before, if they are given time.
    pub(super) async fn shut_down_node(&self, name: &str, grace: ShutdownGrace) -> Result<(), Status> {
        let kubelet = self.kubelet(name)?;
        if !grace.total.is_zero() {
            kubelet.shut_down(grace).await;
        }
        self.running.switch_off(&kubelet);
        Ok(())
    }

    /// [`Inside::shut_down_node`], of which only what takes no time is done when it returns: in a cluster
    /// whose clock is stepped nobody could let time pass meanwhile.
    pub(super) fn begin_shutdown(self: &Arc<Self>, name: &str, grace: ShutdownGrace) -> Result<(), Status> {
        let kubelet = self.kubelet(name)?;
        if grace.total.is_zero() {
            self.running.switch_off(&kubelet);
            return Ok(());
        }
        // The cluster may end meanwhile.
        let inside = Arc::downgrade(self);
        kubelet.shut_down_beside(grace, move |kubelet| {
            inside.upgrade().iter().for_each(|inside| inside.running.switch_off(kubelet));
        });
        Ok(())
    }

    /// The pods of the system, when somebody wants to see them. Those of the control plane are static, and
    /// come with their nodes.
    pub(super) async fn create_system_pods(&self) -> Result<(), Status> {
        if !self.config.system_pods {
            return Ok(());
        }
        let client = self.client();
        let dns = self.config.apiserver.services.service_cluster_ip_range.cluster_dns().to_string();
        system_pods::create(&client, &dns).await?;
        let nodes = self.running.nodes.all();
        let names = nodes.iter().filter(|_| self.config.components.kubelets);
        let names: BTreeSet<String> = names.flat_map(ControlPlanePods::names_on).collect();
        // Who sees nodes that are ready sees these, too, unless something keeps them away.
        let all_there = ready::control_plane(&client, &names);
        if let Ok(waited) = self.for_handles.time.real.timeout(READY_WITHIN, all_there).await {
            waited?;
        }
        Ok(())
    }

    /// The kubelet of a node.
    ///
    /// # Errors
    /// 404 for a node that is not simulated, 409 for one whose kubelet does not run.
    pub(super) fn kubelet(&self, name: &str) -> Result<Kubelet, Status> {
        self.check_node(name)?;
        let stopped = || {
            let text = format!("the kubelet of node {name:?} does not run; start it first");
            Status::failure(409, "Conflict", text)
        };
        self.running.kubelet(name).ok_or_else(stopped)
    }

    fn check_node(&self, name: &str) -> Result<(), Status> {
        if self.running.nodes.contains(name) {
            return Ok(());
        }
        let text = format!("there is no simulated node {name:?}; `kubarium node list` says which there are");
        Err(Status::failure(404, "NotFound", text))
    }
}

/// As the client is told it.
pub(super) fn refused(why: NodeRefusal) -> Status {
    Status::bad_request(why.0)
}

/// The Nodes of groups, whose labels no kubelet may set; those that have nothing of their own register
/// themselves.
pub(super) async fn create_nodes(inside: &Inside, is_new: bool) -> Result<(), StartError> {
    if !is_new {
        heed_stored(inside).await?;
    }
    Ok(create_own(&inside.client(), &inside.running.nodes).await?)
}

/// Of those that have something of their own, which no kubelet may say.
pub(super) async fn create_own(client: &Client, nodes: &NodeRegister) -> Result<(), Status> {
    for node in nodes.all().iter().filter(|node| !node.annotations.is_empty()) {
        match client.create(&NODES, "", node.object()).await {
            Err(status) if !status.is_already_exists() => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the Nodes of all that have none yet, each with its range for pods; which these are.
///
/// # Errors
/// The server's.
pub(super) async fn claim_own(client: &Client, nodes: &NodeRegister) -> Result<Vec<NodeConfig>, Status> {
    // Each in its own name, as its kubelet would: nobody waits for the turn of others.
    let claim = |node: NodeConfig| async {
        let own = client.acting_as(UserInfo::authenticated(&node.user_name(), &["system:nodes"]));
        // With its addresses, which go with its range when it is looked up again.
        let mut object = node.object();
        let address = |address| json!({"type": "InternalIP", "address": address});
        object["status"] = json!({"addresses": node.addresses.iter().map(address).collect::<Vec<_>>()});
        match own.create(&NODES, "", object.clone()).await {
            Ok(_) => Ok(Some(node)),
            Err(status) if status.is_already_exists() => Ok(None),
            // A node of roles is made by whoever may give them.
            Err(status) if status.code == 403 => client.create(&NODES, "", object).await.map(|_| Some(node)),
            Err(status) => Err(status),
        }
    };
    let claims = stream::iter(nodes.all()).map(claim).buffer_unordered(CLAIMS_AT_ONCE);
    let claimed: Vec<Option<NodeConfig>> = claims.try_collect().await?;
    Ok(claimed.into_iter().flatten().collect())
}

/// Gives up those of these Nodes whose range another process has claimed at the same moment, and says whether
/// there were such. Of two that look after they have claimed, one at least sees the other; both may give up.
///
/// # Errors
/// The server's.
pub(super) async fn give_up_contested(client: &Client, claimed: &[NodeConfig]) -> Result<bool, Status> {
    let own: BTreeSet<&str> = claimed.iter().map(|node| &*node.name).collect();
    let mut others = TakenAddresses::default();
    for node in client.list(&NODES, "", &ListOptions::default()).await?.items.iter() {
        if !own.contains(&*node.metadata.name) {
            others.take(&node.metadata.name, &[], node.view::<Node>().spec.pod_ranges());
        }
    }
    let is_contested = |node: &&NodeConfig| others.refusal(&node.name, &[], &node.pod_cidrs).is_some();
    let contested: Vec<&NodeConfig> = claimed.iter().filter(is_contested).collect();
    for node in &contested {
        tracing::info!(node.name, "another node has taken the same range at the same moment");
        client.delete(&NODES, "", &node.name, &DeleteOptions::default()).await?;
    }
    Ok(!contested.is_empty())
}

/// In a cluster that begins with what another left, nodes have the addresses of their Nodes, and no others
/// have them. A fork of what runs knows them already.
pub(super) async fn heed_stored(inside: &Inside) -> Result<(), StartError> {
    if inside.running.nodes.knows_stored() {
        return Ok(());
    }
    let stored = inside.client().list(&NODES, "", &ListOptions::default()).await?;
    inside.running.nodes.fill(&inside.config, &stored.items).map_err(|why| StartError::Stages(why.0))
}

fn kubelet_of(node: &str) -> String {
    format!("kubelet/{node}")
}
