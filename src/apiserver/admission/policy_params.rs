//! Who writes a policy or a binding must be able to read the parameters that it names: else a policy would
//! tell what is in them (`pkg/registry/admissionregistration/*/authz.go`).
//!
//! Upstream has this in the strategies of the four kinds; here it looks behind the plugins, and no flag takes
//! it away.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use crate::authorizer::{Authorizer, Decision};
use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;
use apimachinery::user::{MASTERS, UserInfo};
use apis::scheme::Scheme;
use apis::tree::{at, is_set, text};

const GROUP: &str = "admissionregistration.k8s.io";
/// Policies, and their bindings.
const KINDS: [(&str, &str); 2] = [
    ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
];

/// Asks whether the user may read the parameters.
pub(super) struct PolicyParams {
    registry: Registry,
    scheme: Arc<Scheme>,
    authorizer: Arc<dyn Authorizer>,
}

impl PolicyParams {
    /// Reads policies through the registry.
    pub(super) fn new(with: &Initializer) -> PolicyParams {
        let (registry, scheme) = (with.registry.clone(), with.scheme.clone());
        PolicyParams { registry, scheme, authorizer: with.authorizer.clone() }
    }

    /// What is wrong, and with which field.
    async fn check(
        &self,
        attributes: &Attributes<'_>,
        new: &Value,
        old: &Value,
    ) -> Option<(&'static str, String)> {
        let plural = &*attributes.kind.plural;
        let same = |field: &str| is_set(old, field) && at(old, field) == at(new, field);
        let user = &attributes.ctx.user;
        if KINDS.iter().any(|(policies, _)| *policies == plural) {
            if !is_set(new, "spec.paramKind") || same("spec.paramKind") {
                return None;
            }
            let kind = at(new, "spec.paramKind");
            let info = RequestInfo { name: "*".into(), namespace: "*".into(), ..self.readable(kind) };
            let (name, version) = (text(kind, "kind"), text(kind, "apiVersion"));
            let why = format!(
                "user {} must have \"get\" permission on all objects of the referenced paramKind \
                 (kind={name}, apiVersion={version})",
                shown(user)
            );
            return Some(("spec.paramKind", self.refusal(user, &info, why).await?));
        }
        let (policies, _) = KINDS.iter().find(|(_, bindings)| *bindings == plural)?;
        if !is_set(new, "spec.paramRef") || same("spec.paramRef") && same("spec.policyName") {
            return None;
        }
        let policy = match self.scheme.resource(GROUP, "v1", policies) {
            Some(kind) => self.registry.get(&kind, "", text(new, "spec.policyName"), None).await.ok(),
            None => None,
        };
        let kind = policy.map(|policy| at(&policy.to_value(), "spec.paramKind").clone()).unwrap_or_default();
        let info = RequestInfo {
            name: text(new, "spec.paramRef.name").into(),
            namespace: text(new, "spec.paramRef.namespace").into(),
            ..self.readable(&kind)
        };
        let why = format!(
            "user {} does not have \"get\" permission on the object referenced by paramRef",
            shown(user)
        );
        Some(("spec.paramRef", self.refusal(user, &info, why).await?))
    }

    /// Reading of a kind; of everything, as far as the kind is not known.
    fn readable(&self, kind: &Value) -> RequestInfo {
        let mut info = RequestInfo {
            is_resource_request: true,
            verb: "get".into(),
            group: "*".into(),
            version: "*".into(),
            resource: "*".into(),
            ..RequestInfo::default()
        };
        let version = GroupVersion::parse(text(kind, "apiVersion"));
        if let Some(version) = version.filter(|_| kind.is_object()) {
            if let Some(found) = self.scheme.kind(&version, text(kind, "kind")) {
                info.resource = found.plural.to_string();
            }
            info.group = version.group.to_string();
            info.version = version.version.to_string();
        }
        info
    }

    async fn refusal(&self, user: &UserInfo, info: &RequestInfo, why: String) -> Option<String> {
        match self.authorizer.authorize(user, info).wait().await {
            Decision::Allow(_) => None,
            Decision::Failed { error, .. } => Some(error),
            Decision::Deny(_) | Decision::NoOpinion(_) => Some(why),
        }
    }
}

/// As Go prints a `user.DefaultInfo`.
fn shown(user: &UserInfo) -> String {
    let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, groups.join(" "), extra.join(" "))
}

impl AdmissionPlugin for PolicyParams {
    fn handles(&self, attributes: &Attributes) -> bool {
        matches!(attributes.operation, Operation::Create | Operation::Update)
            && attributes.subresource.is_empty()
            && &*attributes.kind.group_version.group == GROUP
            && !attributes.ctx.user.is_member_of(MASTERS)
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
            let (new, old) = (object.unwrap_or(&Value::Null), old.unwrap_or(&Value::Null));
            let Some((field, why)) = self.check(attributes, new, old).await else { return Ok(()) };
            let mut errors = FieldErrors::default();
            errors.forbidden(field, why);
            let kind = attributes.kind.group_version.kind(&attributes.kind.kind);
            Err(Status::invalid(&kind, text(new, "metadata.name"), &errors))
        })
    }
}
