//! The ports of kubelets in a process of their own (`pkg/kubelet/server`): who asks is known by his
//! certificate or token, what he may the apiserver says, as fine as `KubeletFineGrainedAuthz` has it.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::ApartError;
use super::delegated::{Delegated, PresentedProof};
use super::pages;
use crate::cluster::kubelet_lookup::Kubelets;
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService};
use apiserver::endpoints::routes::debug::Debugging;
use apiserver::kubelet_client::KubeletLookup;
use apiserver::request::is_below;
use apiserver::server::Server;
use clock::Clock;
use pki::Identity;

/// Everything that the ports of one process have in common.
#[derive(Clone)]
pub(super) struct KubeletPorts {
    pub(super) kubelets: Arc<Kubelets>,
    pub(super) delegated: Arc<Delegated>,
    /// Whose clients are believed, PEM.
    pub(super) authority: String,
    pub(super) identity: Identity,
    pub(super) clock: Clock,
    pub(super) debugging: Debugging,
}

impl KubeletPorts {
    /// Opens the port of one node; port 0 takes a free one.
    ///
    /// # Errors
    /// It is taken.
    pub(super) async fn open(&self, node: &str, address: SocketAddr) -> Result<Server, ApartError> {
        let (own, node) = (self.clone(), Arc::<str>::from(node));
        let kubelets: Arc<dyn KubeletLookup> = self.kubelets.clone();
        let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
            let (own, node, kubelets) = (own.clone(), node.clone(), kubelets.clone());
            async move { Ok(own.answer(request, &node, &kubelets).await) }
        }));
        pages::listen(address, self.identity.clone(), &self.authority, service).await
    }

    async fn answer(
        &self,
        request: ApiRequest,
        node: &str,
        kubelets: &Arc<dyn KubeletLookup>,
    ) -> ApiResponse {
        let (verb, subresources) = (verb(request.method()), subresources(request.uri().path()));
        let presented = self.delegated.presented(&request);
        match self.may(presented, node, verb, &subresources).await {
            Ok(()) => apiserver::serve_kubelet(request, node, kubelets, &self.clock, &self.debugging).await,
            Err(status) => pages::refused(&status),
        }
    }

    async fn may(
        &self,
        presented: PresentedProof,
        node: &str,
        verb: &str,
        subresources: &[&str],
    ) -> Result<(), Status> {
        let user = self.delegated.authenticate(presented).await?;
        for subresource in subresources {
            if self.delegated.allows(&user, &attributes(verb, node, subresource)).await? {
                return Ok(());
            }
        }
        let wanted = subresources.join(" ");
        let text =
            format!("Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{wanted}])", user.name);
        Err(Status::failure(403, "Forbidden", text))
    }
}

fn attributes(verb: &str, node: &str, subresource: &str) -> Value {
    json!({"resourceAttributes": {"verb": verb, "group": "", "version": "v1", "resource": "nodes",
        "subresource": subresource, "name": node}})
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    }
}

/// Which subresources of a node allow a path: one of them is enough (`nodeAuthorizerAttributesGetter`).
fn subresources(path: &str) -> Vec<&'static str> {
    let only = [
        ("/stats", "stats"),
        ("/metrics", "metrics"),
        ("/logs", "log"),
        ("/checkpoint", "checkpoint"),
        ("/statusz", "statusz"),
        ("/flagz", "configz"),
    ];
    if let Some((_, subresource)) = only.iter().find(|(root, _)| is_below(path, root)) {
        return vec![subresource];
    }
    let fine =
        [("/healthz", "healthz"), ("/configz", "configz"), ("/pods", "pods"), ("/runningpods", "pods")];
    let fine = fine.iter().find(|(root, _)| is_below(path, root)).map(|(_, subresource)| *subresource);
    fine.into_iter().chain(["proxy"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_need_the_right_that_is_as_narrow_as_they_are() {
        for (path, wanted) in [
            ("/exec/ns/p/c", &["proxy"][..]),
            ("/containerLogs/ns/p/c", &["proxy"]),
            ("/stats/summary", &["stats"]),
            ("/metrics/cadvisor", &["metrics"]),
            ("/metricsx", &["proxy"]),
            ("/logs/", &["log"]),
            ("/statusz", &["statusz"]),
            ("/flagz", &["configz"]),
            ("/healthz", &["healthz", "proxy"]),
            ("/pods", &["pods", "proxy"]),
            ("/configz", &["configz", "proxy"]),
        ] {
            assert_eq!(subresources(path), wanted, "{path}");
        }
        assert_eq!([verb(&Method::GET), verb(&Method::POST), verb(&Method::HEAD)], ["get", "create", "get"]);
    }
}
