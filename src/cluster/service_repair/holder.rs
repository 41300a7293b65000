//! A Service, as far as it holds addresses and ports.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use apimachinery::object::Object;
use apis::tree::{items, text, texts};

/// A Service and what it holds.
pub(super) struct Holder {
    pub(super) object: Arc<Object>,
    pub(super) ips: Vec<String>,
    pub(super) ports: BTreeSet<u16>,
}

impl Holder {
    pub(super) fn of(object: &Arc<Object>) -> Holder {
        let tree = object.to_value();
        let is_port =
            |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let ports = items(&tree, "spec.ports").iter().map(|port| &port["nodePort"]);
        let ports = ports.chain([&tree["spec"]["healthCheckNodePort"]]).filter_map(is_port).collect();
        let ips = texts(&tree, "spec.clusterIPs").into_iter().filter(|ip| *ip != "None").map(str::to_owned);
        Holder { object: object.clone(), ips: ips.collect(), ports }
    }

    pub(super) fn is_called(&self, parent: &Value) -> bool {
        text(parent, "namespace") == self.object.metadata.namespace
            && text(parent, "name") == self.object.metadata.name
    }

    pub(super) fn has(&self, ip: &str) -> bool {
        self.ips.iter().any(|own| own == ip)
    }
}

#[cfg(test)]
pub(super) fn service(name: &str, ips: &[&str], ports: &[u16]) -> Holder {
    let ports: Vec<Value> = ports.iter().map(|port| serde_json::json!({"nodePort": port})).collect();
    let tree = serde_json::json!({"metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIPs": ips, "ports": ports}});
    Holder::of(&Arc::new(Object::from_value(&tree, vec![]).unwrap()))
}
