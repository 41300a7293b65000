//! How far the apiserver has come on its start, as the causal record tells it (upstream: `CreateServerChain`,
//! `InstallAPIs`, post-start hooks).

use std::collections::BTreeSet;

use super::inside::Inside;
use super::ready;
use super::stored::APISERVER;
use apimachinery::wire::ApiService;
use apis::scheme::Scheme;
use client_go::client::Client;
use etcd::Revision;
use flow::{Flow, Step};

/// Which server answers for a path, asked one after the other (`aggregatorapiserver`, the delegation chain).
const DELEGATION: &str = "the server chain: kube-aggregator, then kube-apiserver, then apiextensions-apiserver, \
                          then 404";

/// The store is there and the server is built around it.
pub(super) fn built(service: ApiService, flow: &Flow, scheme: &Scheme, opened_at: Revision) -> ApiService {
    let kinds = scheme.all();
    let versions: BTreeSet<String> = kinds.iter().map(|kind| kind.group_version.to_string()).collect();
    let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
    tell(flow, || format!("etcd is open at revision {opened_at}, keys begin with /registry"));
    tell(flow, || format!("storage for {} kinds", scheme.storage_kinds().len()));
    tell(flow, || format!("routes and handlers for {} resources of {versions}", kinds.len()));
    tell(flow, || DELEGATION.into());
    service
}

/// The post-start hook that all wait for: authorizers know the roles.
pub(super) async fn wait_for_roles(inside: &Inside, client: &Client) {
    ready::wait_for_roles(client).await;
    tell(&inside.flow, || "post-start hooks start-system-namespaces-controller, rbac/bootstrap-roles".into());
}

/// What nobody waits for may begin.
pub(super) fn ready(inside: &Inside) {
    inside.running.ready();
    tell(&inside.flow, || "ready: it serves".into());
}

fn tell(flow: &Flow, what: impl FnOnce() -> String) {
    flow.record_with(None, || Step::Started { component: APISERVER.into(), what: what().into() });
}
