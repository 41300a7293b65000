//! The range of pods' addresses of each node that has none (`pkg/controller/nodeipam/ipam`, range allocator),
//! when `--allocate-node-cidrs` says so. Simulated nodes come with theirs; those that others join have not.

use std::collections::BTreeSet;

use serde_json::json;

use super::cidr_set::CidrSet;
use super::controller::{Action, Controller, Key, Reconcile, Watches};
use super::options::ControllerManagerOptions;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::core::node::NODES;
use apis::views::node::Node;
use client_go::ComponentContext;
use client_go::lister::Lister;

/// Gives each node a part of the cluster's range.
pub(crate) struct NodeIpamController {
    nodes: Lister,
    /// One of each family that the cluster has.
    parts: Vec<CidrSet>,
}

impl NodeIpamController {
    /// With its informer; none when no ranges are to be given, or none fits the flags.
    pub(crate) fn new(
        ctx: &ComponentContext,
        options: &ControllerManagerOptions,
    ) -> Option<NodeIpamController> {
        let parts = options.allocated_cidr_sets();
        let nodes = || ctx.informers.informer(&NODES).lister();
        (!parts.is_empty()).then(|| NodeIpamController { nodes: nodes(), parts })
    }

    /// Of each family the first part that no node has; nothing when one of them has none left.
    fn free(&self) -> Option<Vec<String>> {
        let nodes = self.nodes.all();
        let taken: BTreeSet<String> =
            nodes.iter().flat_map(|node| node.view::<Node>().spec.pod_ranges().to_vec()).collect();
        // Among one more than are taken there is a free one, if there is any.
        let most = u32::try_from(taken.len()).unwrap_or(u32::MAX).saturating_add(1);
        let free =
            |parts: &CidrSet| (0..most).map_while(|at| parts.part(at)).find(|part| !taken.contains(part));
        self.parts.iter().map(free).collect()
    }
}

impl Controller for NodeIpamController {
    const NAME: &'static str = "node-ipam";
    const EVENT_SOURCE: &'static str = "cidrAllocator";
    const SERVICE_ACCOUNT: &'static str = "node-controller";
    /// Two nodes never take a range at the same time.
    const WORKERS: usize = 1;

    fn watches(&self) -> Watches {
        Watches::of(&NODES)
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let has_none = |node: &Node| node.spec.pod_ranges().is_empty();
        let Some(node) = self.nodes.get("", key).filter(|node| has_none(&node.view::<Node>())) else {
            return Ok(Action::Done);
        };
        let Some(parts) = self.free() else {
            let message = format!("Node {key} status is now: CIDRNotAvailable");
            ctx.event(&NODES, &node, "Normal", "CIDRNotAvailable", message);
            return Err(Status::internal(
                "CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range",
            ));
        };
        // The cache may be behind, and a range given twice would be worse than none.
        let fresh = ctx.client.get(&NODES, "", key).await?;
        if !has_none(&fresh.view::<Node>()) {
            return Ok(Action::Done);
        }
        let revision = fresh.metadata.resource_version.to_string();
        let spec = json!({"podCIDR": parts[0], "podCIDRs": parts});
        let patch = json!({"metadata": {"resourceVersion": revision}, "spec": spec});
        ctx.client.patch(&NODES, "", key, PatchType::StrategicMerge, &patch).await?;
        Ok(Action::Done)
    }
}
