//! ClusterRole aggregation: a ClusterRole with an `aggregationRule` has the rules of all that bear the labels
//! (`pkg/controller/clusterroleaggregation`).
//!
//! So the author of a custom resource adds to `view`, `edit` and `admin` by labelling a role of their own.

use serde_json::{Value, json};

use super::controller::{Action, Controller, Key, Reconcile, Watches};
use apimachinery::labels::Selector;
use apimachinery::object::Object;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apis::rbac::policy_rule::PolicyRule;
use apis::rbac::role::CLUSTER_ROLES;
use apis::views::rbac::Role;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// The roles that gather rules: found by their bytes, so that nobody parses all the others.
const AGGREGATED_INDEX: &str = "aggregated";
const YES: &str = "true";

/// Gathers rules.
pub(crate) struct ClusterRoleAggregationController {
    roles: Lister,
}

impl ClusterRoleAggregationController {
    /// With its informer.
    pub(crate) fn new(ctx: &ComponentContext) -> ClusterRoleAggregationController {
        let roles = ctx.informers.informer(&CLUSTER_ROLES);
        roles.add_index(AGGREGATED_INDEX, |role| if may_aggregate(role) { vec![YES.into()] } else { vec![] });
        ClusterRoleAggregationController { roles: roles.lister() }
    }

    /// The rules of every role that one of the selectors matches, by name, each once.
    fn gathered(&self, name: &str, selectors: &[Selector]) -> Vec<PolicyRule> {
        let mut rules: Vec<PolicyRule> = Vec::new();
        for selector in selectors {
            let mut parts = self.roles.list("", selector);
            parts.retain(|part| part.metadata.name != name);
            parts.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
            for part in parts {
                for rule in &part.view::<Role>().rules {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        rules
    }
}

impl Controller for ClusterRoleAggregationController {
    const NAME: &'static str = "clusterrole-aggregation";
    const EVENT_SOURCE: &'static str = "clusterrole-aggregation-controller";
    const SERVICE_ACCOUNT: &'static str = "clusterrole-aggregation-controller";

    fn watches(&self) -> Watches {
        let roles = self.roles.clone();
        Watches::none().maps(&CLUSTER_ROLES, move |_, enqueue| {
            let aggregated = roles.by_index(AGGREGATED_INDEX, YES);
            aggregated.iter().for_each(|role| enqueue.now(role.key()));
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let Some(object) = self.roles.get("", key) else { return Ok(Action::Done) };
        let role = object.view::<Role>();
        let Some(aggregation) = &role.aggregation_rule else { return Ok(Action::Done) };
        let selectors = aggregation.cluster_role_selectors.iter().map(|selector| selector.selector());
        let selectors: Vec<Selector> = selectors.collect::<Result<_, _>>().map_err(Status::internal)?;
        let rules = self.gathered(key, &selectors);
        if rules == role.rules {
            return Ok(Action::Done);
        }
        let (role, place) = (applied(key, &rules), ["", key, ""]);
        ctx.client.patch_as(&CLUSTER_ROLES, place, PatchType::Apply, &role, Self::EVENT_SOURCE).await?;
        Ok(Action::Done)
    }
}

/// What the controller says of a role: its rules and nothing else, so that whoever applies the rest of it
/// meets no conflict (`applyClusterRoles`).
fn applied(name: &str, rules: &[PolicyRule]) -> Value {
    let (version, kind) = (CLUSTER_ROLES.api_version(), &*CLUSTER_ROLES.kind);
    let mut role = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    if !rules.is_empty() {
        role["rules"] = json!(rules);
    }
    role
}

fn may_aggregate(role: &Object) -> bool {
    const FIELD: &[u8] = b"\"aggregationRule\":{";
    role.stored().windows(FIELD.len()).any(|window| window == FIELD)
}
