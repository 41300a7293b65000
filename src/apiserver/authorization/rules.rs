//! RBAC's rules, put so that a request finds those of its user at once (`rbac/validation`, `apis/rbac/v1`
//! evaluation helpers).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use crate::apimachinery::object::{Object, nullable};
use crate::apimachinery::user::UserInfo;
use crate::apiserver::request::RequestInfo;

/// `rbacv1.PolicyRule`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// What may be done; `*` is everything.
    #[serde(deserialize_with = "nullable")]
    pub verbs: Vec<String>,
    /// In which groups; `*` is all.
    #[serde(deserialize_with = "nullable")]
    pub api_groups: Vec<String>,
    /// To what: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(deserialize_with = "nullable")]
    pub resources: Vec<String>,
    /// Only to these objects; empty is all.
    #[serde(deserialize_with = "nullable")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources; a trailing `*` matches the rest.
    #[serde(rename = "nonResourceURLs", deserialize_with = "nullable")]
    pub non_resource_urls: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Role {
    #[serde(deserialize_with = "nullable")]
    rules: Vec<PolicyRule>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    #[serde(deserialize_with = "nullable")]
    subjects: Vec<Subject>,
    role_ref: RoleRef,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

/// The four kinds of objects, by key.
#[derive(Default)]
pub struct RbacObjects {
    /// `roles`
    pub roles: BTreeMap<String, Arc<Object>>,
    /// `clusterroles`
    pub cluster_roles: BTreeMap<String, Arc<Object>>,
    /// `rolebindings`
    pub role_bindings: BTreeMap<String, Arc<Object>>,
    /// `clusterrolebindings`
    pub cluster_role_bindings: BTreeMap<String, Arc<Object>>,
}

/// What is granted to one user or group: where, and which rules; or that the role is missing.
struct Grant {
    /// Empty for all.
    namespace: String,
    /// As `ClusterRoleBinding "a" of ClusterRole "b" to User "c"`.
    reason: Arc<str>,
    rules: Result<Arc<[PolicyRule]>, String>,
}

/// All grants by subject. Never changed: a change of any object makes a new one.
#[derive(Default)]
pub struct CompiledRules {
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

impl CompiledRules {
    /// Resolves every binding's role.
    pub fn compile(objects: &RbacObjects) -> CompiledRules {
        let rules =
            |object: &Arc<Object>| -> Arc<[PolicyRule]> { object.view::<Role>().rules.clone().into() };
        let of = |roles: &BTreeMap<String, Arc<Object>>| -> HashMap<String, Arc<[PolicyRule]>> {
            roles.iter().map(|(key, object)| (key.clone(), rules(object))).collect()
        };
        let roles = (of(&objects.roles), of(&objects.cluster_roles));
        let mut compiled = CompiledRules::default();
        for object in objects.cluster_role_bindings.values().chain(objects.role_bindings.values()) {
            compiled.add(object, &roles);
        }
        compiled
    }

    fn add(&mut self, object: &Arc<Object>, roles: &(Roles, Roles)) {
        let binding = object.view::<Binding>();
        let namespace = &object.metadata.namespace;
        let name = &binding.role_ref.name;
        let (found, kind) = match binding.role_ref.kind.as_str() {
            "Role" => (roles.0.get(&format!("{namespace}/{name}")), "role"),
            _ => (roles.1.get(name), "clusterrole"),
        };
        let missing = || format!("{kind}.rbac.authorization.k8s.io {name:?} not found");
        let rules = found.cloned().ok_or_else(missing);
        for subject in &binding.subjects {
            let reason = reason(object, &binding.role_ref, subject);
            let grant = Grant { namespace: namespace.clone(), reason, rules: rules.clone() };
            match subject.kind.as_str() {
                "User" => self.users.entry(subject.name.clone()).or_default().push(grant),
                "Group" => self.groups.entry(subject.name.clone()).or_default().push(grant),
                "ServiceAccount" => {
                    let home = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                    let user = format!("system:serviceaccount:{home}:{}", subject.name);
                    self.users.entry(user).or_default().push(grant);
                }
                _ => {}
            }
        }
    }

    /// By which grant a rule allows it; else the roles that are bound and missing.
    pub fn allows(&self, user: &UserInfo, info: &RequestInfo) -> Result<Arc<str>, Vec<String>> {
        let of_user = self.users.get(&*user.name).into_iter().flatten();
        let of_groups = user.groups.iter().filter_map(|group| self.groups.get(&**group)).flatten();
        let mut missing = Vec::new();
        for grant in of_user.chain(of_groups) {
            if !grant.namespace.is_empty() && grant.namespace != info.namespace {
                continue;
            }
            match &grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(info)) => {
                    return Ok(grant.reason.clone());
                }
                Ok(_) => {}
                Err(error) => missing.push(error.clone()),
            }
        }
        Err(missing)
    }
}

type Roles = HashMap<String, Arc<[PolicyRule]>>;

impl PolicyRule {
    /// Upstream's `RuleAllows`.
    pub fn allows(&self, info: &RequestInfo) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
        if !has(&self.verbs, &info.verb) {
            return false;
        }
        if !info.is_resource_request {
            return self.non_resource_urls.iter().any(|url| path_matches(url, &info.path));
        }
        has(&self.api_groups, &info.group)
            && self.resources.iter().any(|resource| resource_matches(resource, info))
            && (self.resource_names.is_empty() || self.resource_names.contains(&info.name))
    }
}

/// Upstream's words in the audit log.
fn reason(binding: &Object, role: &RoleRef, subject: &Subject) -> Arc<str> {
    let (namespace, name) = (&binding.metadata.namespace, &binding.metadata.name);
    let binding = match namespace.as_str() {
        "" => format!("ClusterRoleBinding {name:?}"),
        namespace => format!("RoleBinding \"{name}/{namespace}\""),
    };
    format!("{binding} of {} {:?} to {} {:?}", role.kind, role.name, subject.kind, subject.name).into()
}

fn resource_matches(rule: &str, info: &RequestInfo) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => info.subresource.is_empty() && rule == info.resource,
        Some((resource, subresource)) => {
            !info.subresource.is_empty()
                && subresource == info.subresource
                && (resource == "*" || resource == info.resource)
        }
    }
}

fn path_matches(rule: &str, path: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => rule == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object::from_value(&value, vec![]).unwrap())
    }

    fn info(url: &str) -> RequestInfo {
        let (method, path) = url.split_once(' ').unwrap();
        RequestInfo::new(&method.parse().unwrap(), path, "").unwrap()
    }

    fn rules() -> CompiledRules {
        let mut objects = RbacObjects::default();
        let role = json!({"metadata": {"name": "reader"}, "rules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]},
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale"]},
            {"verbs": ["delete"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api*"]}]});
        objects.cluster_roles.insert("reader".into(), object(role));
        let everywhere = json!({"metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "reader"}, "subjects": [{"kind": "User", "name": "everywhere"}]});
        objects.cluster_role_bindings.insert("b".into(), object(everywhere));
        let here = json!({"metadata": {"name": "b", "namespace": "here"},
            "roleRef": {"kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot"}, {"kind": "Group", "name": "team"}]});
        objects.role_bindings.insert("here/b".into(), object(here));
        let broken = json!({"metadata": {"name": "c", "namespace": "here"},
            "roleRef": {"kind": "Role", "name": "gone"}, "subjects": [{"kind": "Group", "name": "lost"}]});
        objects.role_bindings.insert("here/c".into(), object(broken));
        CompiledRules::compile(&objects)
    }

    #[test]
    fn rules_are_matched_as_upstream() {
        let cases = [
            ("everywhere", "GET /api/v1/namespaces/a/pods/p", true),
            ("everywhere", "GET /api/v1/pods", true),
            ("everywhere", "GET /api/v1/namespaces/a/pods/p/log", true),
            ("everywhere", "GET /api/v1/namespaces/a/pods/p/status", false),
            ("everywhere", "DELETE /api/v1/namespaces/a/pods/p", false),
            ("everywhere", "PUT /apis/apps/v1/namespaces/a/deployments/d/scale", true),
            ("everywhere", "PUT /apis/apps/v1/namespaces/a/deployments/d", false),
            ("everywhere", "DELETE /api/v1/namespaces/a/configmaps/mine", true),
            ("everywhere", "DELETE /api/v1/namespaces/a/configmaps/other", false),
            ("everywhere", "GET /apis/apps/v1", true),
            ("everywhere", "GET /healthz", true),
            ("everywhere", "GET /healthz/etcd", false),
            ("system:serviceaccount:here:robot", "GET /api/v1/namespaces/here/pods", true),
            ("system:serviceaccount:here:robot", "GET /api/v1/namespaces/there/pods", false),
            ("system:serviceaccount:here:robot", "GET /api/v1/pods", false),
            ("nobody", "GET /api/v1/namespaces/here/pods", false),
        ];
        let rules = rules();
        for (user, url, allowed) in cases {
            let user = UserInfo::authenticated(user, &[]);
            assert_eq!(rules.allows(&user, &info(url)).is_ok(), allowed, "{} {url}", user.name);
        }
        let user = UserInfo::authenticated("u", &["team"]);
        assert!(rules.allows(&user, &info("GET /api/v1/namespaces/here/pods")).is_ok());
    }

    #[test]
    fn a_missing_role_is_named() {
        let user = UserInfo::authenticated("u", &["lost"]);
        let missing = rules().allows(&user, &info("GET /api/v1/namespaces/here/pods")).unwrap_err();
        assert_eq!(missing, [r#"role.rbac.authorization.k8s.io "gone" not found"#]);
    }
}
