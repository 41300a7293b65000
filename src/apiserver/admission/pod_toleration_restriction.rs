//! PodTolerationRestriction: which taints the pods of a namespace bear, and may bear
//! (`plugin/pkg/admission/podtolerationrestriction`).

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::lister::AdmissionLister;
use super::tolerations::{all_covered, merge};
use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use apimachinery::status::Status;
use apis::core::pod::qos::quality_of_service;
use apis::tree::{annotation, items, set};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

/// Adds the namespace's tolerations, and compares the outcome with its list.
pub(super) struct PodTolerationRestriction {
    namespaces: AdmissionLister,
    defaults: Vec<Value>,
    whitelist: Vec<Value>,
}

impl PodTolerationRestriction {
    /// With its configuration: `default` and `whitelist` for namespaces that say nothing.
    pub(super) fn new(with: &Initializer) -> PodTolerationRestriction {
        let configuration = with.configuration("PodTolerationRestriction");
        PodTolerationRestriction {
            namespaces: AdmissionLister::new(with, "", "v1", "namespaces"),
            defaults: items(configuration, "default").to_vec(),
            whitelist: items(configuration, "whitelist").to_vec(),
        }
    }

    /// What an annotation of the namespace lists; nothing when there is none.
    async fn listed(&self, namespace: &str, name: &str) -> Result<Option<Vec<Value>>, Status> {
        let Some(namespace) = self.namespaces.get("", namespace).await? else { return Ok(None) };
        let namespace = namespace.to_value();
        match annotation(&namespace, name) {
            "" => Ok(None),
            text => serde_json::from_str(text).map(Some).map_err(|error| failure(error.to_string())),
        }
    }

    async fn check(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
        let own = items(pod, "spec.tolerations");
        if own.is_empty() {
            return Ok(());
        }
        let listed = self.listed(attributes.namespace, WHITELIST).await?;
        let (list, scope) = match &listed {
            Some(list) => (list, "namespace"),
            None => (&self.whitelist, "cluster"),
        };
        if all_covered(own, list) {
            return Ok(());
        }
        Err(failure(format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} \
             whitelist"
        )))
    }
}

impl AdmissionPlugin for PodTolerationRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(pod) = object else { return Ok(()) };
            let mut all = items(pod, "spec.tolerations").to_vec();
            if attributes.operation == Operation::Create {
                let listed = self.listed(attributes.namespace, DEFAULTS).await?;
                all = merge(listed.as_ref().unwrap_or(&self.defaults), &all);
            }
            if quality_of_service(pod) != "BestEffort" {
                let pressure = json!({"key": "node.kubernetes.io/memory-pressure", "operator": "Exists",
                    "effect": "NoSchedule"});
                all = merge(&all, &[pressure]);
            }
            if !all.is_empty() {
                set(pod, "spec.tolerations", all);
            }
            self.check(attributes, pod).await
        })
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match object {
                Some(pod) => self.check(attributes, pod).await,
                None => Ok(()),
            }
        })
    }
}

/// Upstream returns a bare error here, which becomes a 500.
fn failure(message: String) -> Status {
    Status::failure(500, "", message)
}
