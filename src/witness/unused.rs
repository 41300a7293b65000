//! What roles allow and nobody who is bound to them has used.

use serde::Serialize;
use serde_json::Value;

use super::uses::RbacUse;

/// What a role allows for nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnusedGrant {
    /// As `ClusterRole/operator` or `Role/default/operator`.
    pub role: String,
    /// As `deployments.apps/status`, or a path.
    pub resource: String,
    /// What nobody did with it.
    pub verbs: Vec<String>,
    /// Where a `*` was used, what would have been enough.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<String>,
}

/// Looks at the roles that are given, each with those who are bound to it.
///
/// `roles` and `bindings` are Roles and ClusterRoles, RoleBindings and ClusterRoleBindings, as trees with
/// `kind`.
pub fn unused(uses: &[RbacUse], roles: &[Value], bindings: &[Value]) -> Vec<UnusedGrant> {
    roles.iter().flat_map(|role| of_role(uses, role, bindings)).collect()
}

fn of_role(uses: &[RbacUse], role: &Value, bindings: &[Value]) -> Vec<UnusedGrant> {
    let is_of = |binding: &&Value| {
        let (reference, metadata) = (&binding["roleRef"], &role["metadata"]);
        let is_in_place =
            role["kind"] == "ClusterRole" || binding["metadata"]["namespace"] == metadata["namespace"];
        reference["kind"] == role["kind"] && reference["name"] == metadata["name"] && is_in_place
    };
    let bound: Vec<&Value> = bindings.iter().filter(is_of).collect();
    let own: Vec<&RbacUse> =
        uses.iter().filter(|it| bound.iter().any(|binding| gives(binding, it))).collect();
    let name = match role["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("Role/{namespace}/{}", text(&role["metadata"]["name"])),
        None => format!("ClusterRole/{}", text(&role["metadata"]["name"])),
    };
    texts_of(&role["rules"]).iter().flat_map(|rule| of_rule(&own, rule, &name)).collect()
}

/// Whether the binding is about this user, in the place of the request.
fn gives(binding: &Value, it: &RbacUse) -> bool {
    let namespace = binding["metadata"]["namespace"].as_str();
    let is_here = namespace.is_none_or(|namespace| it.info.namespace == namespace);
    let is_user = |subject: &Value| {
        let name = text(&subject["name"]);
        match text(&subject["kind"]) {
            "Group" => it.user.is_member_of(name),
            "ServiceAccount" => {
                let of = subject["namespace"].as_str().or(namespace).unwrap_or_default();
                *it.user.name == *format!("system:serviceaccount:{of}:{name}")
            }
            _ => *it.user.name == *name,
        }
    };
    is_here && texts_of(&binding["subjects"]).iter().any(is_user)
}

fn of_rule(uses: &[&RbacUse], rule: &Value, role: &str) -> Vec<UnusedGrant> {
    let verbs = texts(&rule["verbs"]);
    let mut grants = vec![];
    for path in texts(&rule["nonResourceURLs"]) {
        let used = used(uses, |it| !it.info.is_resource_request && is_path(&path, &it.info.path));
        grants.extend(grant(role, path, &verbs, &used));
    }
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            let names = texts(&rule["resourceNames"]);
            let is_meant = |it: &RbacUse| {
                it.info.is_resource_request
                    && (group == "*" || it.info.group == group)
                    && is_resource(&resource, it)
                    && (names.is_empty() || names.iter().any(|name| name == it.object()))
            };
            let shown = if group.is_empty() { resource.clone() } else { dotted(&resource, &group) };
            grants.extend(grant(role, shown, &verbs, &used(uses, is_meant)));
        }
    }
    grants
}

/// The verbs of those uses, sorted.
fn used(uses: &[&RbacUse], is_meant: impl Fn(&RbacUse) -> bool) -> Vec<String> {
    let mut verbs: Vec<String> =
        uses.iter().filter(|it| is_meant(it)).map(|it| it.info.verb.clone()).collect();
    verbs.sort();
    verbs.dedup();
    verbs
}

fn grant(role: &str, resource: String, verbs: &[String], used: &[String]) -> Option<UnusedGrant> {
    let is_star = verbs.iter().any(|verb| verb == "*");
    let is_idle = |verb: &&String| is_star || !used.contains(verb);
    let idle: Vec<String> = verbs.iter().filter(is_idle).cloned().collect();
    let instead = if is_star { used.to_vec() } else { vec![] };
    (!idle.is_empty()).then(|| UnusedGrant { role: role.into(), resource, verbs: idle, instead })
}

fn is_path(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |prefix| path.starts_with(prefix))
}

/// `rbac.ResourceMatches`
fn is_resource(pattern: &str, it: &RbacUse) -> bool {
    let of_any = pattern.strip_prefix("*/");
    pattern == "*"
        || pattern == it.resource()
        || of_any.is_some_and(|subresource| subresource == it.info.subresource)
}

fn dotted(resource: &str, group: &str) -> String {
    match resource.split_once('/') {
        Some((resource, subresource)) => format!("{resource}.{group}/{subresource}"),
        None => format!("{resource}.{group}"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    texts_of(value).iter().map(|value| text(value).to_owned()).collect()
}

fn texts_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::user::UserInfo;
    use apiserver::request::RequestInfo;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn what_is_allowed_and_not_used_is_told() {
        let user = Arc::new(UserInfo::service_account("a", "op"));
        let asked = |method: &http::Method, path: &str| RbacUse {
            user: user.clone(),
            info: Arc::new(RequestInfo::new(method, path, "").unwrap()),
        };
        let get = http::Method::GET;
        let uses = [
            asked(&get, "/api/v1/namespaces/a/pods/x"),
            asked(&get, "/apis/apps/v1/namespaces/a/deployments"),
        ];
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ]);
        let role = json!({"kind": "ClusterRole", "metadata": {"name": "op"}, "rules": rules});
        let subject = json!({"kind": "ServiceAccount", "name": "op", "namespace": "a"});
        let reference = json!({"kind": "ClusterRole", "name": "op"});
        let binding = |namespace: &str| {
            json!({"kind": "RoleBinding", "metadata": {"namespace": namespace}, "roleRef": reference,
                "subjects": [subject]})
        };
        let grant = |resource: &str, verbs: &[&str], instead: &[&str]| UnusedGrant {
            role: "ClusterRole/op".into(),
            resource: resource.into(),
            verbs: verbs.iter().map(|verb| verb.to_string()).collect(),
            instead: instead.iter().map(|verb| verb.to_string()).collect(),
        };
        let expected = [
            grant("pods", &["list"], &[]),
            grant("secrets", &["get", "list"], &[]),
            grant("*.apps", &["*"], &["list"]),
            grant("/metrics", &["get"], &[]),
        ];
        let roles = [role];
        assert_eq!(unused(&uses, &roles, &[binding("a")]), expected);
        let elsewhere = unused(&uses, &roles, &[binding("b")]);
        assert_eq!(elsewhere[0], grant("pods", &["get", "list"], &[]), "it was bound elsewhere");
    }
}
