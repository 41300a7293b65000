//! Which addresses a Service asks for, and how they are written into it.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::super::metadata::member_mut;
use super::allocators::{Allocation, Allocators, ServiceAllocations};
use super::families;
use super::fields::{NONE, invalid};
use super::normalize::{needs_cluster_ip, needs_node_ports};
use apimachinery::status::Status;

/// What a service holds, as it is stored.
pub(super) fn held(service: &Value) -> ServiceAllocations {
    let spec = &service["spec"];
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let ips = if needs_cluster_ip(service) { texts(&spec["clusterIPs"]) } else { vec![] };
    ServiceAllocations {
        ips: ips.iter().filter_map(|ip| ip.parse().ok()).collect(),
        ports: node_ports(service).collect(),
    }
}

/// The node ports that a Service has, that of its health check among them.
pub fn node_ports(service: &Value) -> impl Iterator<Item = u16> + '_ {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
    ports.chain([&spec["healthCheckNodePort"]]).filter_map(port_number)
}

/// Fills in what is missing, of what is free for an allocation that begins. What the old state holds already
/// is not asked for again.
pub(super) fn allocate(
    allocators: &Allocators,
    new: &mut Value,
    old: Option<&Value>,
    mut allocation: Allocation,
) -> Result<Allocation, Status> {
    let before = old.map(held).unwrap_or_default();
    if needs_cluster_ip(new) {
        families::set(&allocators.configured(), new, old)?;
        allocate_ips(allocators, &mut allocation, new, &before)?;
    }
    if needs_node_ports(new) {
        allocate_node_ports(allocators, &mut allocation, new, &before)?;
        allocate_health_check(allocators, &mut allocation, new, &before)?;
    }
    let after = held(new);
    let ips = before.ips.difference(&after.ips).copied().collect();
    allocation
        .give_up(ServiceAllocations { ips, ports: before.ports.difference(&after.ports).copied().collect() });
    Ok(allocation)
}

fn port_number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

/// An address of each family (`allocClusterIPs`), those that are asked for among them.
fn allocate_ips(
    allocators: &Allocators,
    allocation: &mut Allocation,
    new: &mut Value,
    before: &ServiceAllocations,
) -> Result<(), Status> {
    if new["spec"]["clusterIP"] == NONE {
        return Ok(());
    }
    let families = new["spec"]["ipFamilies"].as_array().cloned().unwrap_or_default();
    for (at, family) in families.iter().enumerate() {
        let wanted = new["spec"]["clusterIPs"][at].as_str().unwrap_or_default().to_owned();
        if !wanted.is_empty() {
            take_ip(allocators, allocation, new, before, &wanted)?;
            continue;
        }
        let ip = allocators
            .next_ip(allocation, family == families::V4)
            .map_err(|error| Status::internal(format!("failed to allocate a serviceIP: {error}")))?;
        let spec = member_mut(new, "spec");
        if at == 0 {
            spec.insert("clusterIP".into(), ip.to_string().into());
            spec.insert("clusterIPs".into(), json!([ip.to_string()]));
        } else if let Some(Value::Array(ips)) = spec.get_mut("clusterIPs") {
            ips.truncate(at);
            ips.push(ip.to_string().into());
        }
    }
    Ok(())
}

fn take_ip(
    allocators: &Allocators,
    allocation: &mut Allocation,
    new: &Value,
    before: &ServiceAllocations,
    wanted: &str,
) -> Result<(), Status> {
    // What is no address is left to validation.
    let Ok(ip) = wanted.parse::<IpAddr>() else { return Ok(()) };
    if before.ips.contains(&ip) {
        return Ok(());
    }
    allocators.ip(allocation, ip).map_err(|error| {
        let detail = format!("failed to allocate IP {ip}: {error}");
        invalid(new, "spec.clusterIPs", &new["spec"]["clusterIPs"], &detail)
    })
}

fn allocate_node_ports(
    allocators: &Allocators,
    allocation: &mut Allocation,
    new: &mut Value,
    before: &ServiceAllocations,
) -> Result<(), Status> {
    let count = new["spec"]["ports"].as_array().map_or(0, Vec::len);
    // One number may serve two protocols of a service.
    let mut own: Vec<u16> = Vec::new();
    for at in 0..count {
        let port = match port_number(&new["spec"]["ports"][at]["nodePort"]) {
            Some(port) => {
                if !before.ports.contains(&port) && !own.contains(&port) {
                    let path = format!("spec.ports[{at}].nodePort");
                    let taken = allocators.port(allocation, port);
                    taken.map_err(|error| invalid(new, &path, &json!(port), &error))?;
                }
                port
            }
            None => allocators
                .next_port(allocation)
                .map_err(|error| Status::internal(format!("failed to allocate a nodePort: {error}")))?,
        };
        new["spec"]["ports"][at]["nodePort"] = json!(port);
        own.push(port);
    }
    Ok(())
}

/// A load balancer that keeps to local endpoints asks each node for its health.
fn allocate_health_check(
    allocators: &Allocators,
    allocation: &mut Allocation,
    new: &mut Value,
    before: &ServiceAllocations,
) -> Result<(), Status> {
    let spec = &new["spec"];
    if spec["type"] != "LoadBalancer" || spec["externalTrafficPolicy"] != "Local" {
        return Ok(());
    }
    let port = match port_number(&spec["healthCheckNodePort"]) {
        Some(port) if before.ports.contains(&port) => return Ok(()),
        Some(port) => allocators.port(allocation, port).map(|()| port).map_err(|error| {
            Status::internal(format!("failed to allocate requested HealthCheck NodePort {port}: {error}"))
        })?,
        None => allocators.next_port(allocation).map_err(|error| {
            Status::internal(format!("failed to allocate a HealthCheck NodePort: {error}"))
        })?,
    };
    member_mut(new, "spec").insert("healthCheckNodePort".into(), port.into());
    Ok(())
}
