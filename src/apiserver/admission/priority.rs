//! Priority: the number behind a pod's priority class (`plugin/pkg/admission/priority`).

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Operation, forbidden};
use crate::registry::Registry;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::scheme::Scheme;

const DEFAULT_POLICY: &str = "PreemptLowerPriority";

/// Resolves `priorityClassName` of new pods, and keeps two classes from both being the default.
pub(super) struct Priority {
    registry: Registry,
    classes: Option<Arc<Kind>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PriorityClass {
    value: i64,
    global_default: bool,
    preemption_policy: Option<String>,
}

impl Priority {
    /// Reads priority classes through the registry.
    pub(super) fn new(registry: &Registry, scheme: &Scheme) -> Priority {
        let classes = scheme.resource("scheduling.k8s.io", "v1", "priorityclasses");
        Priority { registry: registry.clone(), classes }
    }

    async fn admit_pod(&self, attributes: &Attributes<'_>, pod: &mut Value) -> Result<(), Status> {
        let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
        let (name, class) = match name.as_str() {
            "" => self.default_class().await?,
            _ => (name.clone(), self.class(attributes, pod, &name).await?),
        };
        let refuse = |pod: &Value, why: String| Err(forbidden(attributes, Some(pod), &why));
        if let Some(given) = pod["spec"]["priority"].as_i64().filter(|given| *given != class.value) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority \
                admission \
                 controller computed {} from the given PriorityClass name",
                class.value
            );
            return refuse(pod, why);
        }
        let policy = class.preemption_policy.as_deref().unwrap_or(DEFAULT_POLICY);
        if let Some(given) = pod["spec"]["preemptionPolicy"].as_str().filter(|given| *given != policy) {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority \
                 admission controller computed {policy} from the given PriorityClass name"
            );
            return refuse(pod, why);
        }
        let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
        if !name.is_empty() {
            spec.insert("priorityClassName".into(), name.into());
        }
        spec.insert("priority".into(), class.value.into());
        spec.insert("preemptionPolicy".into(), policy.into());
        Ok(())
    }

    async fn class(
        &self,
        attributes: &Attributes<'_>,
        pod: &Value,
        name: &str,
    ) -> Result<Arc<PriorityClass>, Status> {
        let missing =
            || forbidden(attributes, Some(pod), &format!("no PriorityClass with name {name} was found"));
        let Some(kind) = &self.classes else { return Err(missing()) };
        // Of those that every cluster has none is the default: who names no class need not wait for them.
        self.registry.bootstrap(kind).await?;
        let found = match self.registry.get(kind, "", name, Some("0")).await {
            Err(error) if error.is_not_found() => self.registry.get(kind, "", name, None).await,
            other => other,
        };
        match found {
            Ok(object) => Ok(object.view()),
            Err(error) if error.is_not_found() => Err(missing()),
            Err(error) => Err(error),
        }
    }

    /// The class of pods that name none: the lowest of those marked as default.
    async fn default_class(&self) -> Result<(String, Arc<PriorityClass>), Status> {
        let classes = self.list().await?;
        let views =
            classes.iter().map(|object| (object.metadata.name.clone(), object.view::<PriorityClass>()));
        let default = views.filter(|(_, class)| class.global_default).min_by_key(|(_, class)| class.value);
        Ok(default.unwrap_or_default())
    }

    async fn list(&self) -> Result<Arc<[Arc<Object>]>, Status> {
        let Some(kind) = &self.classes else { return Ok(Arc::from([])) };
        let options = ListOptions { resource_version: Some("0".into()), ..ListOptions::default() };
        Ok(self.registry.list(kind, "", &options).await?.items)
    }

    async fn validate_class(&self, attributes: &Attributes<'_>, class: &Value) -> Result<(), Status> {
        if class["globalDefault"] != true {
            return Ok(());
        }
        let (name, _) = self.default_class().await?;
        let is_other =
            attributes.operation == Operation::Create || class["metadata"]["name"] != name.as_str();
        if name.is_empty() || !is_other {
            return Ok(());
        }
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        Err(forbidden(attributes, Some(class), &why))
    }
}

impl AdmissionPlugin for Priority {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update)
            && attributes.subresource.is_empty()
            && matches!(&*attributes.kind.plural, "pods" | "priorityclasses")
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match object {
                Some(pod) if &*attributes.kind.plural == "pods" => match old {
                    Some(old) => {
                        keep(pod, old);
                        Ok(())
                    }
                    None => self.admit_pod(attributes, pod).await,
                },
                _ => Ok(()),
            }
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
                Some(class) if &*attributes.kind.plural == "priorityclasses" => {
                    self.validate_class(attributes, class).await
                }
                _ => Ok(()),
            }
        })
    }
}

/// An update that leaves out what this plugin filled in does not mean to take it away.
fn keep(pod: &mut Value, old: &Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["priority", "preemptionPolicy"] {
        if spec.get(field).is_none_or(Value::is_null) && !old["spec"][field].is_null() {
            spec.insert(field.into(), old["spec"][field].clone());
        }
    }
}
