//! `ServiceResolver`: a Service of this cluster to an address that can be reached
//! (`k8s.io/apiserver/pkg/util/webhook.ServiceResolver`, `util/proxy.ResolveEndpoint`).
//!
//! There is no kube-proxy in front of the apiserver, so a Service's own address leads nowhere: one of its
//! ready endpoints is taken, a pod's over the cluster's network.

use std::net::IpAddr;

use serde_json::Value;

use super::pod_network::PodNetwork;
use crate::registry::Registry;
use apimachinery::labels::Selector;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apis::core::endpoints::ENDPOINTS;
use apis::core::service::SERVICES;
use apis::discovery::endpoint_slice::ENDPOINT_SLICES;
use apis::tree::{at, items, number, text};
use entropy::Entropy;

/// Finds endpoints of Services. Cloning shares it.
#[derive(Clone)]
pub struct ServiceResolver {
    /// None where nobody knows any Service.
    registry: Option<Registry>,
    entropy: Entropy,
    pods: PodNetwork,
}

/// Where a Service leads.
pub(super) struct ServiceBackend {
    /// An endpoint's address, or the external name.
    pub(super) host: String,
    /// The endpoint's.
    pub(super) port: u16,
    /// The Service's own address, if it has one.
    pub(super) cluster_ip: Option<IpAddr>,
}

impl ServiceResolver {
    /// Over the registry; `entropy` chooses among endpoints.
    pub fn new(registry: &Registry, entropy: &Entropy) -> ServiceResolver {
        let pods = PodNetwork::default();
        ServiceResolver { registry: Some(registry.clone()), entropy: entropy.clone(), pods }
    }

    /// Of a process that has no registry: no Service is found.
    pub fn nowhere(entropy: &Entropy) -> ServiceResolver {
        ServiceResolver { registry: None, entropy: entropy.clone(), pods: PodNetwork::default() }
    }

    fn registry(&self) -> Result<&Registry, Status> {
        let why = || unavailable("Services of the cluster cannot be reached from this process".into());
        self.registry.as_ref().ok_or_else(why)
    }

    /// Reaches pods, too.
    #[must_use]
    pub fn over(self, pods: &PodNetwork) -> ServiceResolver {
        ServiceResolver { pods: pods.clone(), ..self }
    }

    pub(super) fn pods(&self) -> &PodNetwork {
        &self.pods
    }

    /// Host and port of one ready endpoint.
    ///
    /// # Errors
    /// 404 `service "x" not found`; 503 `no endpoints available for service "x"`, `no service port 443 found
    /// for service "x"`.
    pub async fn resolve_endpoint(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<(String, u16), Status> {
        self.resolve(namespace, name, port).await.map(|backend| (backend.host, backend.port))
    }

    /// One ready endpoint, and the Service's own address.
    ///
    /// # Errors
    /// As [`ServiceResolver::resolve_endpoint`].
    pub(super) async fn resolve(
        &self,
        namespace: &str,
        name: &str,
        port: u16,
    ) -> Result<ServiceBackend, Status> {
        let service = self.service(namespace, name).await?;
        let spec = at(&service, "spec");
        match text(spec, "type") {
            "ExternalName" => {
                return Ok(ServiceBackend {
                    host: text(spec, "externalName").into(),
                    port,
                    cluster_ip: None,
                });
            }
            "ClusterIP" | "NodePort" | "LoadBalancer" | "" => {}
            other => return Err(Status::failure(500, "", format!("unsupported service type {other:?}"))),
        }
        let wanted = items(spec, "ports").iter().find(|own| number(own, "port") == i64::from(port));
        let port_name = text(wanted.ok_or_else(|| no_such_port(name, port))?, "name");
        let mut found = self.slices(namespace, name, port_name).await?;
        if found.is_empty() {
            found = self.endpoints(namespace, name, port_name).await?;
        }
        match found.len() {
            0 => Err(unavailable(format!("no endpoints available for service {name:?}"))),
            count => {
                let (host, port) = found.swap_remove(self.entropy.below(count));
                Ok(ServiceBackend { host, port, cluster_ip: text(spec, "clusterIP").parse().ok() })
            }
        }
    }

    async fn service(&self, namespace: &str, name: &str) -> Result<Value, Status> {
        match self.registry()?.get(&SERVICES, namespace, name, None).await {
            Ok(service) => Ok(service.to_value()),
            // The informer's name for the resource, which is the singular.
            Err(status) if status.is_not_found() => {
                Err(Status::failure(404, "NotFound", format!("service {name:?} not found")))
            }
            Err(status) => Err(status),
        }
    }

    async fn slices(&self, namespace: &str, name: &str, port: &str) -> Result<Vec<(String, u16)>, Status> {
        let label = ("kubernetes.io/service-name".to_owned(), name.to_owned());
        let options = ListOptions {
            predicate: Predicate { labels: Selector::from_labels(&[label].into()), ..Predicate::default() },
            ..ListOptions::default()
        };
        let list = self.registry()?.list(&ENDPOINT_SLICES, namespace, &options).await?;
        let slices = list.items.iter().map(|slice| slice.to_value());
        let is_ready = |endpoint: &&Value| at(endpoint, "conditions.ready").as_bool().unwrap_or(true);
        Ok(slices
            .flat_map(|slice| {
                let endpoints = items(&slice, "endpoints").iter().filter(is_ready);
                let addresses = endpoints.filter_map(|endpoint| items(endpoint, "addresses").first());
                reachable(addresses.filter_map(Value::as_str), items(&slice, "ports"), port)
            })
            .collect())
    }

    async fn endpoints(&self, namespace: &str, name: &str, port: &str) -> Result<Vec<(String, u16)>, Status> {
        let endpoints = match self.registry()?.get(&ENDPOINTS, namespace, name, None).await {
            Err(status) if status.is_not_found() => return Ok(vec![]),
            found => found?.to_value(),
        };
        let subsets = items(&endpoints, "subsets").iter();
        Ok(subsets
            .flat_map(|subset| {
                let addresses = items(subset, "addresses").iter().map(|address| text(address, "ip"));
                reachable(addresses, items(subset, "ports"), port)
            })
            .collect())
    }
}

fn reachable<'a>(
    addresses: impl Iterator<Item = &'a str>,
    ports: &[Value],
    name: &str,
) -> Vec<(String, u16)> {
    let port = ports.iter().find(|port| text(port, "name") == name);
    let port = port.and_then(|port| u16::try_from(number(port, "port")).ok()).filter(|port| *port != 0);
    let Some(port) = port else { return vec![] };
    addresses.map(|address| (address.to_owned(), port)).collect()
}

fn no_such_port(name: &str, port: u16) -> Status {
    unavailable(format!("no service port {port} found for service {name:?}"))
}

fn unavailable(message: String) -> Status {
    Status::failure(503, "ServiceUnavailable", message)
}
