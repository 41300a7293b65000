//! A Service, as far as it holds addresses and ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use apimachinery::object::{Object, object_key};
use apis::tree::{text, texts};
use apiserver::registry::service::node_ports;

/// A Service and what it holds.
pub(super) struct Holder {
    pub(super) object: Arc<Object>,
    pub(super) ips: Vec<String>,
    pub(super) ports: BTreeSet<u16>,
}

impl Holder {
    pub(super) fn of(object: &Arc<Object>) -> Holder {
        let tree = object.to_value();
        let ips = texts(&tree, "spec.clusterIPs").into_iter().filter(|ip| *ip != "None").map(str::to_owned);
        Holder { object: object.clone(), ips: ips.collect(), ports: node_ports(&tree).collect() }
    }

    pub(super) fn has(&self, ip: &str) -> bool {
        self.ips.iter().any(|own| own == ip)
    }
}

/// All Services, in the order of their keys.
pub(super) struct Holders(BTreeMap<String, Holder>);

impl Holders {
    pub(super) fn of(holders: impl IntoIterator<Item = Holder>) -> Holders {
        Holders(holders.into_iter().map(|holder| (holder.object.key(), holder)).collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Holder> + Clone {
        self.0.values()
    }

    /// The one that a `ParentReference` names.
    pub(super) fn named(&self, parent: &Value) -> Option<&Holder> {
        self.0.get(&object_key(text(parent, "namespace"), text(parent, "name")))
    }
}

#[cfg(test)]
pub(super) fn service(name: &str, ips: &[&str], ports: &[u16]) -> Holder {
    let ports: Vec<Value> = ports.iter().map(|port| serde_json::json!({"nodePort": port})).collect();
    let tree = serde_json::json!({"metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIPs": ips, "ports": ports}});
    Holder::of(&Arc::new(Object::from_value(&tree, vec![]).unwrap()))
}
