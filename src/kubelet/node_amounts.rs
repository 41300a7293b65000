//! Amounts that somebody else has written into a Node's status, as who advertises an extended resource does:
//! what is its kubelet's own is put right, and what others say it has pods may use (`MachineInfo` of
//! `pkg/kubelet/nodestatus`).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::dependencies::Dependencies;
use super::node_config::NodeConfig;
use apimachinery::object::Object;
use apimachinery::quantity::Quantity;
use apis::validation::resources::is_extended;
use apis::views::node::NodeStatus;
use stages::Governed;

/// Amounts by the names of their resources; nothing stands for one that is to go.
type AmendedAmounts = BTreeMap<String, Option<String>>;

/// What pods may use of a node of which that status was found: what is its own, and all that others say it
/// has. Of an extended resource that it has no more nothing is left.
pub(crate) fn allocatable(config: &NodeConfig, found: &NodeStatus) -> AmendedAmounts {
    let has = |name: &str| config.capacity.contains_key(name) || found.capacity.contains_key(name);
    let gone = found.allocatable.keys().filter(|name| is_extended(name) && !has(name));
    let gone = gone.map(|name| (name.clone(), None));
    let of_others = found.capacity.iter().map(|(name, amount)| (name.clone(), Some(amount.clone())));
    let own = config.allocatable().into_iter().map(|(name, amount)| (name, Some(amount)));
    gone.chain(of_others).chain(own).collect()
}

/// Whether a kubelet that looks at this status leaves it as it is.
fn is_kept(config: &NodeConfig, found: &NodeStatus) -> bool {
    let is_found = |there: &BTreeMap<String, String>, name: &String, amount: Option<&String>| {
        is_same(there.get(name), amount)
    };
    let mut capacity = config.capacity.iter();
    let mut allocatable = allocatable(config, found).into_iter();
    capacity.all(|(name, amount)| is_found(&found.capacity, name, Some(amount)))
        && allocatable.all(|(name, amount)| is_found(&found.allocatable, &name, amount.as_ref()))
}

/// However they are written.
fn is_same(there: Option<&String>, wanted: Option<&String>) -> bool {
    match (there, wanted) {
        (Some(there), Some(wanted)) => {
            there == wanted || Quantity::parse(there).is_ok_and(|there| Quantity::parse(wanted) == Ok(there))
        }
        (there, wanted) => there.is_none() && wanted.is_none(),
    }
}

impl Dependencies {
    /// What others have written is looked at when the status is next (`--node-status-update-frequency`).
    /// Before it is there at all nobody else has written.
    pub(crate) fn note_amounts(&self, object: &Object, found: &NodeStatus) {
        let is_own = !found.conditions.is_empty() && !self.is_played(Governed::Node, object);
        let is_amended = is_own && !is_kept(&self.config, found);
        if self.state.is_amended.swap(is_amended, Ordering::Relaxed) != is_amended && is_amended {
            self.state.amended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(capacity: &Value, allocatable: &Value) -> NodeStatus {
        let own = NodeConfig::numbered(1);
        let mut status = json!({"capacity": own.capacity, "allocatable": own.allocatable()});
        for (part, more) in [("capacity", capacity), ("allocatable", allocatable)] {
            for (name, amount) in more.as_object().unwrap() {
                status[part][name] = amount.clone();
            }
        }
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn what_others_say_a_node_has_pods_may_use() {
        let config = NodeConfig::numbered(1);
        let (dongles, four, none) = ("example.com/dongle", json!({"example.com/dongle": "4"}), json!({}));
        let advertised = found(&four, &none);
        assert!(!is_kept(&config, &advertised));
        assert_eq!(allocatable(&config, &advertised)[dongles].as_deref(), Some("4"));
        assert!(is_kept(&config, &found(&four, &json!({"example.com/dongle": "4000m"}))));
        // Without the capacity there is nothing to be given.
        let withdrawn = found(&none, &four);
        assert!(!is_kept(&config, &withdrawn));
        assert_eq!(allocatable(&config, &withdrawn)[dongles], None);
        assert!(is_kept(&config, &found(&none, &json!({"batteries": "4"}))), "none that a kubelet knows");
    }

    #[test]
    fn what_is_the_kubelets_own_is_put_right() {
        let config = NodeConfig::numbered(1);
        let (more, none) = (json!({"cpu": "1k"}), json!({}));
        assert!(is_kept(&config, &found(&none, &none)));
        assert!(is_kept(&config, &found(&json!({"cpu": "8000m"}), &none)));
        assert!(!is_kept(&config, &found(&more, &none)));
        assert!(!is_kept(&config, &found(&none, &more)));
        assert_eq!(allocatable(&config, &found(&more, &more))["cpu"].as_deref(), Some("8"));
    }
}
