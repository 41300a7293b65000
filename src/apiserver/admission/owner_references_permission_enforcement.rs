//! OwnerReferencesPermissionEnforcement: who sets owners must be allowed to delete, and who blocks an owner's
//! deletion must be allowed to change its finalizers (`plugin/pkg/admission/gc`).

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Authorizer, Initializer, Operation, forbidden};
use crate::request::RequestInfo;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;
use apis::scheme::Scheme;
use apis::tree::{flag, items, text};

/// Asks the authorizer about changes of `metadata.ownerReferences`.
pub(super) struct OwnerReferencesPermissionEnforcement {
    authorizer: Arc<dyn Authorizer>,
    scheme: Arc<Scheme>,
}

impl OwnerReferencesPermissionEnforcement {
    /// With the server's authorizer.
    pub(super) fn new(with: &Initializer) -> OwnerReferencesPermissionEnforcement {
        let (authorizer, scheme) = (with.authorizer.clone(), with.scheme.clone());
        OwnerReferencesPermissionEnforcement { authorizer, scheme }
    }

    /// Why not, where it is not allowed. Upstream prints the authorizer's error behind it, which is none.
    async fn refusal(&self, attributes: &Attributes<'_>, info: RequestInfo) -> Option<String> {
        attributes.ctx.second_checks.note(&info);
        let verdict = self.authorizer.authorize(&attributes.ctx.user, &info).wait().await;
        (!verdict.is_allowed()).then(|| format!("{}, <nil>", verdict.reason()))
    }

    async fn check(
        &self,
        attributes: &Attributes<'_>,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), String> {
        if attributes.operation == Operation::Update {
            let resource = RequestInfo {
                is_resource_request: true,
                verb: "delete".into(),
                api_prefix: "apis",
                group: attributes.kind.group_version.group.to_string(),
                version: attributes.kind.group_version.version.to_string(),
                namespace: attributes.namespace.into(),
                resource: attributes.kind.plural.to_string(),
                name: attributes.name.into(),
                ..RequestInfo::default()
            };
            if let Some(why) = self.refusal(attributes, resource).await {
                return Err(format!("cannot set an ownerRef on a resource you can't delete: {why}"));
            }
        }
        for reference in newly_blocking(new, old) {
            let owner = self.finalizers_of(attributes, reference)?;
            if let Some(why) = self.refusal(attributes, owner).await {
                return Err(format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
                     finalizers on: {why}"
                ));
            }
        }
        Ok(())
    }

    fn finalizers_of(&self, attributes: &Attributes<'_>, reference: &Value) -> Result<RequestInfo, String> {
        let (api_version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
        let group_version = match api_version.split_once('/') {
            Some((group, version)) => GroupVersion::new(group, version),
            None => GroupVersion::new("", api_version),
        };
        let found = self.scheme.kind(&group_version, kind).ok_or_else(|| {
            format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                 {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            )
        })?;
        Ok(RequestInfo {
            is_resource_request: true,
            verb: "update".into(),
            api_prefix: "apis",
            group: group_version.group.to_string(),
            version: group_version.version.to_string(),
            namespace: if found.namespaced { attributes.namespace.into() } else { String::new() },
            resource: found.plural.to_string(),
            subresource: "finalizers".into(),
            name: text(reference, "name").into(),
            ..RequestInfo::default()
        })
    }
}

impl AdmissionPlugin for OwnerReferencesPermissionEnforcement {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_pod_status = &*attributes.kind.plural == "pods" && attributes.subresource == "status";
        matches!(attributes.operation, Operation::Create | Operation::Update) && !is_pod_status
    }

    fn changes(&self) -> bool {
        false
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a Attributes,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(new) = object.filter(|new| is_changing(new, old)) else { return Ok(()) };
            let outcome = self.check(attributes, new, old).await;
            outcome.map_err(|why| forbidden(attributes, object, &why))
        })
    }
}

const REFERENCES: &str = "metadata.ownerReferences";

fn is_changing(new: &Value, old: Option<&Value>) -> bool {
    items(new, REFERENCES) != old.map(|old| items(old, REFERENCES)).unwrap_or_default()
}

/// Those that block their owner's deletion and did not before.
fn newly_blocking<'a>(new: &'a Value, old: Option<&Value>) -> Vec<&'a Value> {
    let blocks = |reference: &&Value| flag(reference, "blockOwnerDeletion");
    let before = old.map(|old| items(old, REFERENCES)).unwrap_or_default();
    let before: HashSet<&Value> = before.iter().filter(blocks).map(|before| &before["uid"]).collect();
    let is_new = |reference: &&Value| !before.contains(&reference["uid"]);
    items(new, REFERENCES).iter().filter(blocks).filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_new_blocks_count() {
        let object = |references: Value| json!({"metadata": {"ownerReferences": references}});
        let blocking = json!({"uid": "a", "blockOwnerDeletion": true});
        let free = json!({"uid": "a"});
        let none = object(json!([]));
        for (new, old, count) in [
            (object(json!([blocking])), None, 1),
            (object(json!([free])), None, 0),
            (object(json!([blocking])), Some(object(json!([blocking]))), 0),
            (object(json!([blocking])), Some(object(json!([free]))), 1),
            (none, Some(object(json!([blocking]))), 0),
        ] {
            assert_eq!(newly_blocking(&new, old.as_ref()).len(), count);
        }
    }
}
