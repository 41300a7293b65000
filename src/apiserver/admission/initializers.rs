//! Initializers: new objects wait, unseen, until each that is named in `metadata.initializers.pending` has
//! taken its name away (`admission/plugin/initialization`, Kubernetes 1.7 to 1.13; behind a feature gate).
//!
//! The first name in the list is the one whose turn it is: those that wait for their turn leave the object
//! alone. The server leaves that to them, as upstream did; what it holds is who may change such an object,
//! and that nothing is initialized twice.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::lister::AdmissionLister;
use super::{AdmissionPlugin, Attributes, Authorizer, Initializer, Operation};
use crate::request::RequestInfo;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::status::Status;
use apis::tree::{at, count, is_set, items, object_mut, remove, text, texts};

const PATH: &str = "metadata.initializers";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Puts the configured names into new objects, and checks who changes those that wait.
pub(super) struct Initializers {
    configurations: AdmissionLister,
    authorizer: Arc<dyn Authorizer>,
}

impl Initializers {
    /// Reads InitializerConfigurations.
    pub(super) fn new(with: &Initializer) -> Initializers {
        let group = "admissionregistration.k8s.io";
        let configurations = AdmissionLister::new(with, group, "v1alpha1", "initializerconfigurations");
        Initializers { configurations, authorizer: with.authorizer.clone() }
    }

    async fn admit_new(&self, attributes: &Attributes<'_>, new: &mut Value) -> Result<(), Status> {
        if is_set(new, PATH) {
            self.expect_right(attributes, "create with initializers denied").await?;
            // An empty list is how somebody with that right gets past the initializers.
            drop_if_done(new);
            return Ok(());
        }
        let is_pod = attributes.writes("", "pods");
        if is_pod && at(new, "metadata.annotations").get(MIRROR).is_some() {
            return Ok(());
        }
        let names = self.names(attributes).await?;
        if !names.is_empty() {
            let pending: Vec<Value> = names.into_iter().map(|name| json!({"name": name})).collect();
            object_mut(new, "metadata").insert("initializers".into(), json!({"pending": pending}));
        }
        Ok(())
    }

    /// The initializers of a resource: by configuration, and there as they stand; each once.
    async fn names(&self, attributes: &Attributes<'_>) -> Result<Vec<String>, Status> {
        let mut names: Vec<String> = Vec::new();
        for configuration in self.configurations.list("").await?.iter() {
            let configuration = configuration.to_value();
            for initializer in items(&configuration, "initializers") {
                let name = text(initializer, "name");
                let is_meant = items(initializer, "rules").iter().any(|rule| is_about(rule, attributes));
                if is_meant && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        Ok(names)
    }

    async fn admit_changed(
        &self,
        attributes: &Attributes<'_>,
        new: &mut Value,
        old: &Value,
    ) -> Result<(), Status> {
        drop_if_done(new);
        if !is_set(new, PATH) && !is_set(old, PATH) {
            return Ok(());
        }
        let errors = check_change(at(new, PATH), at(old, PATH));
        if !errors.is_empty() {
            return Err(Status::invalid(&attributes.kind.gvk(), attributes.name, &errors));
        }
        self.expect_right(attributes, "update to uninitialized resource denied").await
    }

    /// Who touches what waits must be allowed to `initialize` it.
    async fn expect_right(&self, attributes: &Attributes<'_>, what: &str) -> Result<(), Status> {
        let info = RequestInfo {
            is_resource_request: true,
            verb: "initialize".into(),
            group: attributes.kind.group_version.group.to_string(),
            version: attributes.kind.group_version.version.to_string(),
            namespace: attributes.namespace.into(),
            resource: attributes.kind.plural.to_string(),
            name: attributes.name.into(),
            ..RequestInfo::default()
        };
        attributes.ctx.second_checks.note(&info);
        let verdict = self.authorizer.authorize(&attributes.ctx.user, &info).wait().await;
        if verdict.is_allowed() {
            return Ok(());
        }
        let why = format!("{what}: {}", verdict.reason());
        Err(Status::forbidden(&attributes.kind.group_resource(), attributes.name, &why))
    }
}

impl AdmissionPlugin for Initializers {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update)
            && attributes.subresource.is_empty()
    }

    fn validates(&self) -> bool {
        false
    }

    fn admit<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            match (object, old) {
                (Some(new), Some(old)) => self.admit_changed(attributes, new, old).await,
                (Some(new), None) => self.admit_new(attributes, new).await,
                (None, _) => Ok(()),
            }
        })
    }
}

fn is_about(rule: &Value, attributes: &Attributes) -> bool {
    let has = |list: &str, name: &str| texts(rule, list).iter().any(|item| *item == "*" || *item == name);
    let group_version = &attributes.kind.group_version;
    has("apiGroups", &group_version.group)
        && has("apiVersions", &group_version.version)
        && has("resources", &attributes.kind.plural)
}

/// Nobody left to wait for, and no failure: the object is like any other.
fn drop_if_done(object: &mut Value) {
    let initializers = at(object, PATH);
    if !initializers.is_null() && count(initializers, "pending") == 0 && !is_set(initializers, "result") {
        remove(object, PATH);
    }
}

/// `ValidateInitializersUpdate`
fn check_change(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::default();
    match (old.is_null(), new.is_null()) {
        (true, false) => {
            let detail = "field is immutable once initialization has completed";
            errors.push(PATH, ErrorType::Invalid, "null".into(), detail);
        }
        (false, false) if is_set(old, "result") && old["result"] != new["result"] => {
            errors.invalid(format!("{PATH}.result"), &new["result"], "field is immutable");
        }
        (false, false) if is_set(new, "result") && text(new, "result.status") != "Failure" => {
            let detail = "must be 'Failure'";
            errors.invalid(format!("{PATH}.result.status"), &new["result"]["status"], detail);
        }
        _ => {}
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_initialized_twice_and_a_failure_stays() {
        let pending = json!({"pending": [{"name": "a.example.com"}]});
        let failed = json!({"pending": [{"name": "a.example.com"}], "result": {"status": "Failure"}});
        let cases = [
            (&Value::Null, &pending, true),
            (&pending, &failed, false),
            (&failed, &failed, true),
            (&pending, &Value::Null, false),
            (&failed, &pending, true),
        ];
        for (new, old, is_right) in cases {
            assert_eq!(check_change(new, old).is_empty(), is_right, "{old} to {new}");
        }
    }

    #[test]
    fn an_empty_list_is_none() {
        let mut object = json!({"metadata": {"initializers": {"pending": []}}});
        drop_if_done(&mut object);
        assert_eq!(object, json!({"metadata": {}}));
    }
}
