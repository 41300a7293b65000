//! The fields of a Service that follow from each other and from what it was before
//! (`normalizeClusterIPs`, `patchAllocatedValues`, `dropTypeDependentFields`).

use serde_json::{Map, Value, json};

use super::super::metadata::member_mut;

/// Whether a service of this type has a cluster IP.
pub(super) fn needs_cluster_ip(service: &Value) -> bool {
    service["spec"]["type"] != "ExternalName"
}

/// Whether its ports are opened on each node.
pub(super) fn needs_node_ports(service: &Value) -> bool {
    let spec = &service["spec"];
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

/// Of a new service.
pub(super) fn for_create(new: &mut Value) {
    pair_cluster_ips(new);
    default_policies(new);
}

/// Of the new state of a service: what the client left out and the server had filled in is taken from the old
/// one; what the old type had and the new one has not is dropped, unless the client changed it in the same
/// write.
pub(super) fn for_update(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        let same_ip =
            is_unset(&new["spec"]["clusterIP"]) || new["spec"]["clusterIP"] == old["spec"]["clusterIP"];
        let fields: &[&str] = if same_ip { &["clusterIP", "clusterIPs", "ipFamilies"] } else { &[] };
        fields.iter().chain(&["ipFamilyPolicy"]).for_each(|field| keep(new, old, field));
    }
    if needs_node_ports(old) && needs_node_ports(new) {
        keep_node_ports(new, old);
        keep(new, old, "healthCheckNodePort");
    }
    follow_cluster_ip(new, old);
    drop_fields_of_old_type(new, old);
    pair_cluster_ips(new);
    default_policies(new);
}

fn spec_mut(service: &mut Value) -> &mut Map<String, Value> {
    member_mut(service, "spec")
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    }
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    let kept = &old["spec"][field];
    if is_unset(&new["spec"][field]) && !is_unset(kept) {
        spec_mut(new).insert(field.into(), kept.clone());
    }
}

/// Who changes `clusterIP` alone means both.
fn follow_cluster_ip(new: &mut Value, old: &Value) {
    let (ips, ip) = (&new["spec"]["clusterIPs"], &new["spec"]["clusterIP"]);
    if *ips == old["spec"]["clusterIPs"] && *ip != old["spec"]["clusterIP"] && !is_unset(ips) {
        let following = if is_unset(ip) { Value::Null } else { json!([ip]) };
        spec_mut(new).insert("clusterIPs".into(), following);
    }
}

/// `clusterIP` is the first of `clusterIPs`; clients may set either.
fn pair_cluster_ips(service: &mut Value) {
    let spec = spec_mut(service);
    let ip = spec.get("clusterIP").cloned().unwrap_or_default();
    let first = spec.get("clusterIPs").and_then(|ips| ips.get(0)).cloned().unwrap_or_default();
    match (is_unset(&ip), is_unset(&first)) {
        (false, true) => spec.insert("clusterIPs".into(), json!([ip])),
        (true, false) => spec.insert("clusterIP".into(), first),
        _ => None,
    };
}

fn default_policies(service: &mut Value) {
    if needs_cluster_ip(service) {
        spec_mut(service).entry("internalTrafficPolicy").or_insert_with(|| json!("Cluster"));
    } else {
        // Taken for the sake of old clients, and never shown.
        spec_mut(service).remove("internalTrafficPolicy");
    }
}

/// A port that is still there keeps its node port.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let ports = |service: &Value| service["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let mut used: Vec<Value> =
        ports(new).iter().map(|port| port["nodePort"].clone()).filter(|port| !is_unset(port)).collect();
    let before = ports(old);
    let Some(Value::Array(now)) = spec_mut(new).get_mut("ports") else { return };
    for port in now.iter_mut().filter(|port| is_unset(&port["nodePort"])) {
        let same = |other: &&Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        let Some(node_port) = before.iter().find(same).map(|other| other["nodePort"].clone()) else {
            continue;
        };
        if !is_unset(&node_port) && !used.contains(&node_port) {
            port["nodePort"] = node_port.clone();
            used.push(node_port);
        }
    }
}

fn drop_fields_of_old_type(new: &mut Value, old: &Value) {
    let unchanged = |new: &Value, field: &str| new["spec"][field] == old["spec"][field];
    let mut drop: Vec<&str> = Vec::new();
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        drop.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    let is_external = |service: &Value| match service["spec"]["type"].as_str() {
        Some("NodePort" | "LoadBalancer") => true,
        Some("ClusterIP") => !is_unset(&service["spec"]["externalIPs"]),
        _ => false,
    };
    if is_external(old) && !is_external(new) {
        drop.extend(["externalTrafficPolicy"]);
    }
    let has_health_check = |service: &Value| {
        service["spec"]["type"] == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local"
    };
    if has_health_check(old) && !has_health_check(new) {
        drop.push("healthCheckNodePort");
    }
    if old["spec"]["type"] == "LoadBalancer" && new["spec"]["type"] != "LoadBalancer" {
        drop.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    drop.retain(|field| unchanged(new, field));
    let node_ports = |service: &Value| -> Vec<Value> {
        let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ports.iter().map(|port| port["nodePort"].clone()).collect()
    };
    let drop_ports = needs_node_ports(old) && !needs_node_ports(new) && node_ports(old) == node_ports(new);
    let spec = spec_mut(new);
    drop.iter().for_each(|field| {
        spec.remove(*field);
    });
    if let (true, Some(Value::Array(ports))) = (drop_ports, spec.get_mut("ports")) {
        ports.iter_mut().filter_map(Value::as_object_mut).for_each(|port| {
            port.remove("nodePort");
        });
    }
}
