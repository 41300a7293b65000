//! How far the apiserver has come on its start, as the causal record tells it (upstream: `CreateServerChain`,
//! `InstallAPIs`, post-start hooks).

use std::collections::BTreeSet;

use super::config::Config;
use super::data_dir::store_checks;
use super::inside::Inside;
use super::ready;
use super::stored::APISERVER;
use apimachinery::wire::ApiService;
use apis::scheme::Scheme;
use apiserver::config::ApiserverConfig;
use apiserver::post_start_hooks::{PostStartHooks, StartStep};
use apiserver::storage::ByteStore;
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

/// The post-start hooks that all wait for: authorizers know the roles, custom kinds are served.
pub(super) async fn wait_for_informers(inside: &Inside) {
    ready::wait_for_roles(&inside.client()).await;
    inside.hooks.custom_kinds_served().await;
}

/// As a first start has it, told.
pub(super) async fn wait_for_roles(inside: &Inside) {
    wait_for_informers(inside).await;
    tell(&inside.flow, || "post-start hooks start-system-namespaces-controller, rbac/bootstrap-roles".into());
}

/// What nobody waits for may begin.
pub(super) fn ready(inside: &Inside) {
    inside.running.ready();
    tell(&inside.flow, || "ready: it serves".into());
}

/// What the server is asked at `/healthz`, `/livez` and `/readyz`: how its store is, and how far its start
/// has come, which whoever starts it tells the hooks.
pub(super) fn checks(apiserver: &mut ApiserverConfig, config: &Config, kv: &ByteStore) -> PostStartHooks {
    let health = std::mem::take(&mut apiserver.health);
    apiserver.health = store_checks(health, kv, &config.apiserver.etcd);
    apiserver.post_start_hooks = hooks(config);
    apiserver.post_start_hooks.clone()
}

/// The steps that a cluster of this config takes.
fn hooks(config: &Config) -> PostStartHooks {
    use StartStep::{IdentityKept, LooksAfterObjects, NamespacesMade, ServiceMade, TrustPublished};
    let has_port = config.listen.is_some();
    let makes = !config.read_only;
    let looks_after = makes && config.looks_after_itself;
    let steps = [
        (NamespacesMade, makes),
        (ServiceMade, makes),
        (TrustPublished, makes && (has_port || config.components.kubelets)),
        (LooksAfterObjects, looks_after),
        (IdentityKept, looks_after && has_port),
    ];
    PostStartHooks::expecting(steps.into_iter().filter(|(_, is_taken)| *is_taken).map(|(step, _)| step))
}

fn tell(flow: &Flow, what: impl FnOnce() -> String) {
    flow.record_with(None, || Step::Started { component: APISERVER.into(), what: what().into() });
}
