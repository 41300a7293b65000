//! The APIServices of the groups that are served here (`autoregister`, `crdregistration`): made when somebody
//! first asks for APIServices, and kept in step with the kinds from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::priorities::{is_registered, priorities};
use crate::registry::Registry;
use crate::request::RequestContext;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::apiregistration::api_service::API_SERVICES;
use apis::kind::Kind;
use apis::scheme::Scheme;

/// By which the server's own APIServices are told from others.
pub(super) const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Of built-in groups.
const ON_START: &str = "onstart";
/// Of custom resources' groups: they come and go.
const ALWAYS: &str = "true";

/// Makes what is missing and deletes what is no longer served.
///
/// # Errors
/// The store's.
pub(super) async fn sync(registry: &Registry, scheme: &Scheme) -> Result<(), Status> {
    let kind: Arc<Kind> = Arc::clone(&API_SERVICES);
    let ctx = RequestContext::default();
    let everything = ListOptions::default();
    let mut wanted = wanted(scheme);
    for current in registry.list(&kind, "", &everything).await?.items.iter() {
        let is_wanted = wanted.remove(&current.metadata.name).is_some();
        if is_wanted || !is_ours(current) {
            continue;
        }
        let (name, options) = (&current.metadata.name, DeleteOptions::default());
        match registry.delete(&ctx, &kind, "", name, &options, &()).await {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
    }
    for (_, tree) in wanted {
        let is_new = tree["metadata"]["labels"][AUTOMANAGED] == ALWAYS;
        let ctx = if is_new { RequestContext::default() } else { registry.from_the_start() };
        match registry.create(&ctx, &kind, "", tree, &()).await {
            Err(status) if !status.is_already_exists() => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

fn is_ours(service: &Object) -> bool {
    service.metadata.labels.contains_key(AUTOMANAGED)
}

/// What the APIServices of local groups and versions are called; one for each of their kinds.
pub(super) fn names(scheme: &Scheme) -> impl Iterator<Item = String> + use<> {
    let kinds = scheme.all().into_iter().map(|kind| kind.group_version.clone());
    kinds.filter(|of| is_registered(&of.group)).map(|of| name(&of.group, &of.version))
}

fn name(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

/// One APIService for each local group and version, by name.
fn wanted(scheme: &Scheme) -> BTreeMap<String, Value> {
    let kinds = scheme.all();
    let served = kinds.iter().filter(|kind| is_registered(&kind.group_version.group));
    served.map(|kind| api_service(kind)).collect()
}

fn api_service(kind: &Kind) -> (String, Value) {
    let (group, version) = (&*kind.group_version.group, &*kind.group_version.version);
    let name = name(group, version);
    let (group_priority, version_priority) = priorities(group, version);
    let automanaged = if kind.is_custom { ALWAYS } else { ON_START };
    let mut spec = json!({"version": version, "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority});
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    let tree = json!({"metadata": {"name": name, "labels": {AUTOMANAGED: automanaged}}, "spec": spec});
    (name, tree)
}
