//! Nobody gives away what they do not have: roles and bindings are only written by who holds what is in them,
//! or is allowed to `escalate` or `bind` (`pkg/registry/rbac/*/policybased`).
//!
//! Upstream wraps the storage of the four kinds in this; here it looks last of all plugins, and no flag takes
//! it away.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::{AdmissionPlugin, Attributes, Initializer, Operation};
use crate::authorizer::Authorizer;
use crate::registry::Registry;
use crate::request::RequestInfo;
use apimachinery::status::Status;
use apimachinery::user::MASTERS;
use apis::kind::Kind;
use apis::rbac::policy_rule::{PolicyRule, compact, quoted, uncovered};
use apis::tree::text;
use apis::validation::equal;
use apis::views::rbac::Role;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Compares what is given with what the giver has.
pub(super) struct RbacEscalation {
    registry: Registry,
    authorizer: Arc<dyn Authorizer>,
    /// Knows what users have by roles; what other authorizers allow does not count.
    rbac: Arc<dyn Authorizer>,
    roles: Option<Arc<Kind>>,
    cluster_roles: Option<Arc<Kind>>,
}

impl RbacEscalation {
    /// Reads roles through the registry.
    pub(super) fn new(with: &Initializer) -> RbacEscalation {
        RbacEscalation {
            registry: with.registry.clone(),
            authorizer: with.authorizer.clone(),
            rbac: with.rbac.clone(),
            roles: with.scheme.resource(GROUP, "v1", "roles"),
            cluster_roles: with.scheme.resource(GROUP, "v1", "clusterroles"),
        }
    }

    async fn check(&self, attributes: &Attributes<'_>, new: &Value, old: &Value) -> Result<(), Status> {
        let is_master = attributes.ctx.user.is_member_of(MASTERS);
        let is_asked_for = attributes.ctx.second_checks.is_listened_to();
        if (is_master && !is_asked_for) || only_collects_garbage(new, old) {
            return Ok(());
        }
        let name = text(new, "metadata.name");
        let aggregates = |role: &Value| !role["aggregationRule"].is_null();
        if &*attributes.kind.plural == "roles" || &*attributes.kind.plural == "clusterroles" {
            let (rules, aggregates) = (rules_of(new), aggregates(new) || aggregates(old));
            let escalate = right(attributes, "escalate", &attributes.kind.plural, name);
            // Whoever holds what they give does without. A role of what they have asked for holds none of it.
            if aggregates || !rules.is_empty() {
                attributes.ctx.second_checks.note(&escalate);
            }
            if is_master || self.may(attributes, &escalate).await {
                return Ok(());
            }
            self.holds(attributes, name, &rules)?;
            if aggregates {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                let refused = |_| Status::forbidden(&attributes.kind.group_resource(), name, why);
                self.holds(attributes, name, &PolicyRule::everything()).map_err(refused)?;
            }
            return Ok(());
        }
        let (kind, role) = (text(new, "roleRef.kind"), text(new, "roleRef.name"));
        let plural = if kind == "Role" { "roles" } else { "clusterroles" };
        let bind = right(attributes, "bind", plural, role);
        attributes.ctx.second_checks.note(&bind);
        if is_master || self.may(attributes, &bind).await {
            return Ok(());
        }
        let rules = self.rules_of_role(attributes, kind, role).await?;
        self.holds(attributes, name, &rules)
    }

    async fn may(&self, attributes: &Attributes<'_>, right: &RequestInfo) -> bool {
        self.authorizer.authorize(&attributes.ctx.user, right).wait().await.is_allowed()
    }

    /// `GetRoleReferenceRules`
    async fn rules_of_role(
        &self,
        attributes: &Attributes<'_>,
        kind: &str,
        name: &str,
    ) -> Result<Vec<PolicyRule>, Status> {
        let (found, namespace) = match kind {
            "Role" => (&self.roles, attributes.namespace),
            _ => (&self.cluster_roles, ""),
        };
        let found = found.as_ref().ok_or_else(|| Status::internal("RBAC is not served"))?;
        Ok(self.registry.get(found, namespace, name, None).await?.view::<Role>().rules.clone())
    }

    /// `ConfirmNoEscalation`
    fn holds(&self, attributes: &Attributes<'_>, name: &str, wanted: &[PolicyRule]) -> Result<(), Status> {
        let user = &attributes.ctx.user;
        let held = self.rbac.rules_for(user, attributes.namespace);
        let missing = uncovered(&held.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = compact(missing).iter().map(PolicyRule::shown).collect();
        let mut why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            quoted(&user.groups),
            shown.join("\n")
        );
        if !held.errors.is_empty() {
            why += &format!("; resolution errors: [{}]", held.errors.join(", "));
        }
        Err(Status::forbidden(&attributes.kind.group_resource(), name, &why))
    }
}

impl AdmissionPlugin for RbacEscalation {
    fn handles(&self, attributes: &Attributes) -> bool {
        *attributes.kind.group_version.group == *GROUP
            && matches!(attributes.operation, Operation::Create | Operation::Update)
            && attributes.subresource.is_empty()
    }

    fn changes(&self) -> bool {
        false
    }

    fn admits(&self) -> bool {
        true
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
            let Some(object) = object.as_deref() else { return Ok(()) };
            self.check(attributes, object, old.unwrap_or(&Value::Null)).await
        })
    }
}

/// To do that with a role.
fn right(attributes: &Attributes, verb: &str, plural: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource_request: true,
        verb: verb.into(),
        group: GROUP.into(),
        version: "*".into(),
        namespace: attributes.namespace.into(),
        resource: plural.into(),
        name: name.into(),
        ..RequestInfo::default()
    }
}

fn rules_of(role: &Value) -> Vec<PolicyRule> {
    // What cannot be read as rules is refused by the kind's validation, which comes next.
    Option::<Vec<PolicyRule>>::deserialize(&role["rules"]).ok().flatten().unwrap_or_default()
}

/// Whether owners and finalizers are all that changes (`IsOnlyMutatingGCFields`).
fn only_collects_garbage(new: &Value, old: &Value) -> bool {
    if old.is_null() {
        return false;
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        object
    };
    equal(&rest(new), &rest(old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_garbage_collector_gives_nothing_away() {
        let old =
            json!({"metadata": {"name": "a", "finalizers": ["x"], "resourceVersion": "1"}, "rules": []});
        let without = json!({"metadata": {"name": "a"}, "rules": null});
        let more = json!({"metadata": {"name": "a"}, "rules": [{"verbs": ["get"]}]});
        assert!(only_collects_garbage(&without, &old));
        assert!(!only_collects_garbage(&more, &old) && !only_collects_garbage(&without, &Value::Null));
    }
}
