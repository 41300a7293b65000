//! Who may have devices that others use (`pkg/registry/resource`, `AuthorizedForAdmin` and
//! `AuthorizedForAdminStatus`): only claims in a namespace that is labelled for that.

use serde_json::Value;

use super::Registry;
use super::metadata::text;
use super::store::Part;
use apimachinery::field_error::{ErrorType, FieldErrors};
use apimachinery::status::Status;
use apis::kind::Kind;
use apis::tree::{flag, items};

/// On a namespace: devices may be claimed there for administration.
const ADMIN_NAMESPACE: &str = "resource.kubernetes.io/admin-access";
const GROUP: &str = "resource.k8s.io";

impl Registry {
    /// What is wrong with the namespace of a new claim, or of a template for claims, that asks for such
    /// access. A spec never changes, so that nobody has to ask again.
    pub(super) async fn admin_access_on_create(&self, kind: &Kind, new: &Value) -> FieldErrors {
        let requests = match of_group(kind) {
            "resourceclaims" => "spec.devices.requests",
            "resourceclaimtemplates" => "spec.spec.devices.requests",
            _ => return FieldErrors::default(),
        };
        let asks = |request: &Value| flag(request, "exactly.adminAccess");
        match items(new, requests).iter().position(asks) {
            // Of a template, too: upstream has one path for both.
            Some(at) => self.admin_access(new, format!("spec.devices.requests[{at}].adminAccess")).await,
            None => FieldErrors::default(),
        }
    }

    /// What is wrong with the devices that a claim is given, unless it was given such access before.
    pub(super) async fn admin_access_on_update(
        &self,
        kind: &Kind,
        part: Part,
        new: &Value,
        old: &Value,
    ) -> FieldErrors {
        const RESULTS: &str = "status.allocation.devices.results";
        if part != Part::Status || of_group(kind) != "resourceclaims" {
            return FieldErrors::default();
        }
        let granted = |claim: &Value| items(claim, RESULTS).iter().position(|one| flag(one, "adminAccess"));
        match granted(new).filter(|_| granted(old).is_none()) {
            Some(at) => self.admin_access(new, format!("{RESULTS}[{at}].adminAccess")).await,
            None => FieldErrors::default(),
        }
    }

    async fn admin_access(&self, new: &Value, path: String) -> FieldErrors {
        let mut errors = FieldErrors::default();
        match self.has_admin_label(text(new, "namespace")).await {
            Ok(true) => {}
            Ok(false) => errors.forbidden(
                path,
                format!(
                    "admin access to devices requires the `{ADMIN_NAMESPACE}: true` label on the containing \
                     namespace"
                ),
            ),
            Err(status) => {
                let why = format!("could not retrieve namespace to verify admin access: {}", status.message);
                errors.push(path, ErrorType::InternalError, String::new(), &why);
            }
        }
        errors
    }

    async fn has_admin_label(&self, namespace: &str) -> Result<bool, Status> {
        let kind = self.kind("", "v1", "namespaces")?;
        let namespace = Box::pin(self.get(&kind, "", namespace, None)).await?;
        Ok(namespace.metadata.labels.get(ADMIN_NAMESPACE).is_some_and(|label| &**label == "true"))
    }
}

/// The plural of a kind of the group, and nothing of others.
fn of_group(kind: &Kind) -> &str {
    if &*kind.group_version.group == GROUP { &kind.plural } else { "" }
}
