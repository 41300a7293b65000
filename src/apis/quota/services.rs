//! What Services use: ports of nodes, balancers (`evaluator/core/services.go`).

use serde_json::Value;

use super::measure::{Measure, one};
use super::surroundings::ClaimSurroundings;
use crate::resources::Amounts;
use crate::tree::{at, count, items, number, text};
use apimachinery::quantity::{Format, Quantity};
use apimachinery::time::Time;

/// `services`
pub const SERVICE_USAGE: ServiceMeasure = ServiceMeasure;

/// Measures Services.
pub struct ServiceMeasure;

impl Measure for ServiceMeasure {
    fn handles(&self, _is_create: bool, subresource: &str) -> bool {
        subresource.is_empty()
    }

    fn measures(&self, name: &str) -> bool {
        matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
    }

    fn usage(&self, service: &Value, _now: Time, _around: &ClaimSurroundings) -> Amounts {
        service_usage(service)
    }

    fn frees(&self, old: &Value, new: &Value) -> bool {
        ["spec.type", "spec.ports"].iter().any(|path| at(old, path) != at(new, path))
    }
}

fn service_usage(service: &Value) -> Amounts {
    let ports = i64::try_from(count(service, "spec.ports")).unwrap_or(i64::MAX);
    let explicit = items(service, "spec.ports").iter().filter(|port| number(port, "nodePort") != 0).count();
    let (node_ports, load_balancers) = match text(service, "spec.type") {
        "NodePort" => (ports, 0),
        "LoadBalancer" if at(service, "spec.allocateLoadBalancerNodePorts") == false => {
            (i64::try_from(explicit).unwrap_or(i64::MAX), 1)
        }
        "LoadBalancer" => (ports, 1),
        _ => (0, 0),
    };
    let number = |number| Quantity::new(number, Format::DecimalSi);
    Amounts::from([
        ("services".into(), one()),
        ("services.nodeports".into(), number(node_ports)),
        ("services.loadbalancers".into(), number(load_balancers)),
    ])
}
