//! The node's Lease in `kube-node-lease`, which says that its kubelet lives
//! (`component-helpers/apimachinery/lease`).

use std::sync::Arc;

use serde_json::{Value, json};

use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::{Time, rfc3339_micro};
use apis::coordination::lease::LEASES;
use client_go::client::Client;

/// Where the Leases of nodes are.
pub(crate) const NAMESPACE: &str = "kube-node-lease";
/// After so long without a renewal a node counts as gone.
const DURATION_SECONDS: u32 = 40;

/// A node's Lease, as it was written last.
pub(crate) struct NodeLease {
    name: String,
    owner_uid: String,
    written: Option<Arc<Object>>,
    /// Whether somebody else has renewed it.
    is_shared: bool,
}

impl NodeLease {
    /// Of a node; the Node owns it.
    pub(crate) fn new(name: &str, owner_uid: &str) -> NodeLease {
        NodeLease { name: name.into(), owner_uid: owner_uid.into(), written: None, is_shared: false }
    }

    /// Writes that the kubelet lives at `now`: over what was written last, or what is there, or a new one.
    pub(crate) async fn renew(&mut self, client: &Client, now: Time) -> Result<(), Status> {
        let last = self.written.take();
        if let Some(written) = &last {
            match self.update(client, written, now).await {
                Ok(written) => {
                    self.written = Some(written);
                    return Ok(());
                }
                Err(status) if status.is_conflict() || status.is_not_found() => {}
                Err(status) => return Err(status),
            }
        }
        let written = match client.get(&LEASES, NAMESPACE, &self.name).await {
            Ok(found) => {
                self.notice_another(last.as_deref(), &found, now);
                self.update(client, &found, now).await?
            }
            Err(status) if status.is_not_found() => {
                client.create(&LEASES, NAMESPACE, self.lease(now)).await?
            }
            Err(status) => return Err(status),
        };
        self.written = Some(written);
        Ok(())
    }

    /// Says once that two processes run one node: which of them writes the status of a pod is then by chance.
    /// Whoever writes something else into a Lease leaves its time as it was; `now` was written by this one,
    /// and its answer was lost.
    fn notice_another(&mut self, last: Option<&Object>, found: &Object, now: Time) {
        let renewed = |lease: &Object| lease.to_value()["spec"]["renewTime"].clone();
        let is_own = renewed(found) == rfc3339_micro(now);
        let is_renewed = !is_own && last.is_some_and(|last| renewed(last) != renewed(found));
        if is_renewed && !self.is_shared {
            self.is_shared = true;
            tracing::error!(
                node = self.name,
                "another kubelet renews the Lease of this node, too: give one of the two processes other nodes, \
                 or none, as with --nodes 0"
            );
        }
    }

    async fn update(&self, client: &Client, old: &Object, now: Time) -> Result<Arc<Object>, Status> {
        let mut lease = old.to_value();
        lease["spec"] = self.spec(now);
        client.update(&LEASES, NAMESPACE, &self.name, lease).await
    }

    fn lease(&self, now: Time) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self.owner_uid});
        json!({
            "metadata": {"name": self.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": self.spec(now),
        })
    }

    fn spec(&self, now: Time) -> Value {
        let (holder, renewed) = (self.name.as_str(), rfc3339_micro(now));
        json!({"holderIdentity": holder, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": renewed})
    }
}
