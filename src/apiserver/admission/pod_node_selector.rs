//! PodNodeSelector: the pods of a namespace run where the namespace says
//! (`plugin/pkg/admission/podnodeselector`).

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use serde_json::Value;

use super::config::BadAdmissionConfig;
use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::status::Status;
use apis::tree::{annotation, object_mut, string_map, text};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
const CLUSTER_DEFAULT: &str = "clusterDefaultNodeSelector";
const CONFLICT: &str = "pod node label selector conflicts with its namespace node label selector";
const NOT_IN_WHITELIST: &str = "pod node label selector labels conflict with its namespace whitelist";

/// Adds the namespace's node selector to its pods; keeps them within the configured list.
pub(super) struct PodNodeSelector {
    namespaces: AdmissionLister,
    /// By namespace, and the cluster's default.
    selectors: BTreeMap<String, BTreeMap<String, String>>,
}

impl PodNodeSelector {
    /// With its configuration (`podNodeSelectorPluginConfig`).
    ///
    /// # Errors
    /// A selector that is no list of `key=value`.
    pub(super) fn new(with: &Initializer) -> Result<PodNodeSelector, BadAdmissionConfig> {
        let configured = string_map(with.configuration("PodNodeSelector"), "podNodeSelectorPluginConfig");
        let parse = |(name, text): (String, String)| Ok((name, parse(&text)?));
        let selectors = configured.into_iter().map(parse).collect::<Result<_, String>>()?;
        Ok(PodNodeSelector { namespaces: AdmissionLister::new(with, "", "v1", "namespaces"), selectors })
    }

    async fn of_namespace(&self, name: &str) -> Result<BTreeMap<String, String>, Status> {
        let namespace = self.namespaces.get("", name).await?.map(|namespace| namespace.to_value());
        match namespace.as_ref().map(|namespace| annotation(namespace, ANNOTATION)) {
            Some(given) if !given.is_empty() => parse(given).map_err(Status::internal),
            _ => Ok(self.selectors.get(CLUSTER_DEFAULT).cloned().unwrap_or_default()),
        }
    }
}

impl AdmissionPlugin for PodNodeSelector {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            let own = string_map(pod, "spec.nodeSelector");
            let given = self.of_namespace(attributes.namespace).await?;
            if conflicts(&own, &given) {
                return Err(refuse(attributes, pod, CONFLICT));
            }
            if !given.is_empty() {
                let given = given.into_iter().map(|(key, value)| (key, Value::from(value)));
                object_mut(pod, "spec.nodeSelector").extend(given);
            }
            Ok(())
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            let own = string_map(pod, "spec.nodeSelector");
            if conflicts(&own, &self.of_namespace(attributes.namespace).await?) {
                return Err(refuse(attributes, pod, CONFLICT));
            }
            let allowed = self.selectors.get(attributes.namespace).filter(|allowed| !allowed.is_empty());
            if allowed.is_some_and(|allowed| own.iter().any(|(key, value)| allowed.get(key) != Some(value))) {
                return Err(refuse(attributes, pod, NOT_IN_WHITELIST));
            }
            Ok(())
        })
    }
}

fn conflicts(own: &BTreeMap<String, String>, given: &BTreeMap<String, String>) -> bool {
    own.iter().any(|(key, value)| given.get(key).is_some_and(|other| other != value))
}

/// Upstream names the pod by its name alone, be it empty.
fn refuse(attributes: &Attributes<'_>, pod: &Value, why: &str) -> Status {
    let resource = attributes.kind.group_resource();
    let mut status = Status::forbidden(&resource, text(pod, "metadata.name"), why);
    if text(pod, "metadata.name").is_empty() {
        status.message = format!("{resource} \"\" is forbidden: {why}");
    }
    status
}

/// `labels.ConvertSelectorToLabelsMap`
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("invalid selector: {pair:?}"))?;
        labels.insert(key.trim().to_owned(), value.trim().to_owned());
    }
    Ok(labels)
}
