//! Faults of the network: who the pods are that their selectors name. Before the first such fault no pod is
//! watched for it.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Notify;

use super::inside::{Inside, MASTERS};
use apimachinery::object::Object;
use apimachinery::user::UserInfo;
use apis::core::pod::PODS;
use apis::views::pod::Pod;
use client_go::ComponentContext;
use client_go::lister::Lister;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use faults::{NetworkFault, NetworkSide};
use network::address_range::AddressRange;
use network::weather::Disturbance;

/// Who watches.
const NAME: &str = "kubarium:network-faults";

/// [`follow`], which settles with everything else.
pub(super) fn following(inside: Arc<Inside>) -> impl Future<Output = ()> {
    inside.clock.named(NAME).tracked(follow(inside))
}

async fn follow(inside: Arc<Inside>) {
    let faults = inside.interceptors.faults.clone();
    let mut changes = faults.changes_of_network();
    while faults.of_network().is_empty() {
        if changes.changed().await.is_err() {
            return;
        }
    }
    let client = inside.client().acting_as(UserInfo::authenticated(NAME, &[MASTERS]));
    let (clock, entropy) = (inside.clock.clone(), inside.config.entropy.clone());
    let context = ComponentContext::new(NAME, (NAME, ""), client, clock, entropy);
    let _tasks = context.tasks.stop_on_drop();
    let pods = context.informers.informer(&PODS);
    let moved = Arc::new(Notify::new());
    pods.add_handler(PodsHeard(moved.clone()));
    context.informers.start(&context.tasks);
    pods.wait_for_sync().await;
    let pods = pods.lister();
    loop {
        let rules = faults.of_network().iter().filter_map(|fault| rule(fault, &pods)).collect();
        // There are fewer faults than there may be rules.
        if let Err(refused) = inside.data_plane.network().disturb_by_faults(rules) {
            tracing::warn!(%refused, "faults of the network are not in force");
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = moved.notified() => {}
        }
    }
}

/// None while nobody is on one of its sides.
fn rule(fault: &NetworkFault, pods: &Lister) -> Option<Disturbance> {
    Some(Disturbance {
        one: addresses(&fault.between, pods)?,
        other: addresses(&fault.and, pods)?,
        latency: fault.latency.map_or_else(Default::default, |latency| latency.0),
        loss: fault.loss.unwrap_or(0.0),
        is_refused: fault.refuse,
        is_partition: fault.partition,
    })
}

/// Empty for everybody; nothing for nobody.
fn addresses(side: &str, pods: &Lister) -> Option<Vec<AddressRange>> {
    // It was read when the fault was added.
    let (namespace, selector) = match NetworkSide::parse(side).ok()? {
        NetworkSide::Everybody => return Some(vec![]),
        NetworkSide::Addresses(range) => return Some(vec![range]),
        NetworkSide::Pods(namespace, selector) => (namespace, selector),
    };
    let meant = pods.list(namespace.as_deref().unwrap_or_default(), &selector);
    let ranges: Vec<AddressRange> = meant.iter().flat_map(ips_of).map(AddressRange::one).collect();
    Some(ranges).filter(|ranges| !ranges.is_empty())
}

/// Its own: that of a pod of its node's network is the node's, and that of a pod that has ended may be given
/// on. NetworkPolicies leave these out, too.
fn ips_of(pod: &Arc<Object>) -> Vec<IpAddr> {
    let view = pod.view::<Pod>();
    if view.spec.host_network || matches!(view.status.phase.as_str(), "Succeeded" | "Failed") {
        return vec![];
    }
    view.status.pod_ips.iter().filter_map(|ip| ip.ip.parse().ok()).collect()
}

/// Pods that came, went or got another address or other labels.
struct PodsHeard(Arc<Notify>);

impl ResourceEventHandler for PodsHeard {
    fn on_add(&self, _: &Arc<Object>, _is_initial_list: bool) {
        self.0.notify_one();
    }

    fn on_update(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if old.metadata.labels != new.metadata.labels || ips_of(old) != ips_of(new) {
            self.0.notify_one();
        }
    }

    fn on_delete(&self, _: &Deleted) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ips(spec: Value, phase: &str) -> usize {
        let status = json!({"phase": phase, "podIPs": [{"ip": "10.244.0.5"}, {"ip": "fd00::5"}]});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"},
            "spec": spec, "status": status});
        ips_of(&Arc::new(Object::from_value(&pod, vec![]).unwrap())).len()
    }

    #[test]
    fn addresses_that_are_others_do_not_count() {
        assert_eq!(ips(json!({}), "Running"), 2);
        assert_eq!(ips(json!({"hostNetwork": true}), "Running"), 0);
        assert_eq!(ips(json!({}), "Succeeded"), 0);
        assert_eq!(ips(json!({}), "Failed"), 0);
    }
}
