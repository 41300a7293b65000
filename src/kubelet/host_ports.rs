//! Ports of the node that lead to ports of its pods: `hostPort`, as the CNI plugin `portmap` has it.

use std::net::SocketAddr;

use super::kubelet::Kubelet;
use super::kuberuntime::state::is_sidecar;
use apis::views::pod::{ContainerPort, Pod};

impl Kubelet {
    /// Where a port of the node's own addresses leads, or of its loopback; nothing where no pod asked for it.
    /// Pods of the node's network listen there themselves.
    pub fn behind_host_port(&self, to: SocketAddr, protocol: &str) -> Option<SocketAddr> {
        if !self.is_own(to.ip()) && !to.ip().is_loopback() {
            return None;
        }
        let state = self.pods.state();
        let mut running = state.workers.iter().filter(|(_, entry)| !entry.is_terminated);
        running.find_map(|(uid, entry)| {
            let port = mapped(&entry.pod(), to, protocol)?.container_port;
            let status = self.shared.node.runtime.pod_sandbox_status(uid)?;
            let mut ips = status.ips().filter_map(|ip| ip.parse().ok());
            let ip = ips.find(|ip: &std::net::IpAddr| ip.is_ipv4() == to.is_ipv4())?;
            Some(SocketAddr::new(ip, port))
        })
    }
}

/// The port of a pod for which it asked the node, at an address that it meant.
fn mapped<'a>(pod: &'a Pod, to: SocketAddr, protocol: &str) -> Option<&'a ContainerPort> {
    if pod.spec.host_network {
        return None;
    }
    let sidecars = pod.spec.init_containers.iter().filter(|one| is_sidecar(one));
    let ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    let is_meant = |host_ip: &str| match host_ip.parse::<std::net::IpAddr>() {
        Ok(ip) => ip.is_unspecified() || ip == to.ip(),
        Err(_) => true,
    };
    let is_of = |own: &str| own == protocol || (own.is_empty() && protocol == "TCP");
    ports.into_iter().find(|port| {
        port.host_port == to.port() && to.port() != 0 && is_of(&port.protocol) && is_meant(&port.host_ip)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_of_the_node_is_that_of_one_pod_at_the_address_that_it_meant() {
        let ports = json!([
            {"containerPort": 80, "hostPort": 8080},
            {"containerPort": 53, "hostPort": 8080, "protocol": "UDP", "hostIP": "172.18.0.2"},
            {"containerPort": 443, "hostPort": 8443, "hostIP": "127.0.0.1"},
        ]);
        let spec = json!({"containers": [{"name": "c", "ports": ports}]});
        let pod = |spec: serde_json::Value| -> Pod { serde_json::from_value(json!({"spec": spec})).unwrap() };
        let own = pod(spec.clone());
        let leads = |pod: &Pod, to: &str, protocol: &str| {
            mapped(pod, to.parse().unwrap(), protocol).map(|port| port.container_port)
        };
        assert_eq!(leads(&own, "172.18.0.2:8080", "TCP"), Some(80));
        assert_eq!(leads(&own, "172.18.0.2:8080", "UDP"), Some(53));
        assert_eq!(leads(&own, "172.18.0.3:8080", "UDP"), None, "another address");
        assert_eq!(leads(&own, "172.18.0.2:8443", "TCP"), None, "for the node's own loopback");
        assert_eq!(leads(&own, "127.0.0.1:8443", "TCP"), Some(443));
        assert_eq!(leads(&own, "127.0.0.1:8080", "UDP"), None, "for another address");
        assert_eq!(leads(&own, "172.18.0.2:80", "TCP"), None);
        let mut shared = spec;
        shared["hostNetwork"] = true.into();
        assert_eq!(leads(&pod(shared), "172.18.0.2:8080", "TCP"), None);
    }
}
