//! The least role that would have been enough for what a user has asked for.
//!
//! What every authenticated user may do anyway (discovery, questions about oneself) is left out. What was
//! asked for in one namespace goes into a Role there, the rest into a ClusterRole; what that allows
//! everywhere is in no Role. What the server looks at behind the path is among it, as `bind` for whoever
//! writes a RoleBinding, whether or not they hold what they give.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::uses::RbacUse;
use apiserver::request::is_below;

/// What the bootstrap roles let everybody get (`system:discovery`, `system:public-info-viewer`).
const FOR_EVERYBODY: [&str; 7] = ["/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz"];
/// What they let everybody create (`system:basic-user`).
const ABOUT_ONESELF: [&str; 3] =
    ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"];
const RBAC: &str = "rbac.authorization.k8s.io";

/// Which resources, by group, and which objects of them; the verbs are what is collected.
type Needs = BTreeMap<(String, String, Vec<String>), BTreeSet<String>>;

/// The roles and their bindings for `user`, in the order in which they are applied. `with_names` restricts
/// rules to the objects that were asked for, where every request named one.
pub fn infer(uses: &[RbacUse], user: &str, with_names: bool) -> Vec<Value> {
    let own: Vec<&RbacUse> =
        uses.iter().filter(|it| *it.user.name == *user && !is_for_everybody(it)).collect();
    let everywhere: Vec<&RbacUse> = own.iter().copied().filter(|it| it.info.namespace.is_empty()).collect();
    let mut objects = vec![];
    let mut rules = rules(&everywhere, with_names);
    rules.extend(urls(&everywhere));
    if !rules.is_empty() {
        objects.extend(bound("ClusterRole", "", user, rules));
    }
    let namespaces: BTreeSet<&str> = own.iter().map(|it| it.info.namespace.as_str()).collect();
    for namespace in namespaces.into_iter().filter(|namespace| !namespace.is_empty()) {
        let is_here = |it: &&RbacUse| it.info.namespace == namespace && !is_among(&everywhere, it);
        let here: Vec<&RbacUse> = own.iter().copied().filter(is_here).collect();
        if !here.is_empty() {
            objects.extend(bound("Role", namespace, user, self::rules(&here, with_names)));
        }
    }
    objects
}

fn is_for_everybody(it: &RbacUse) -> bool {
    let info = &it.info;
    if info.is_resource_request {
        return info.verb == "create" && ABOUT_ONESELF.contains(&info.resource.as_str());
    }
    info.verb == "get" && FOR_EVERYBODY.iter().any(|root| is_below(&info.path, root))
}

/// Whether the same is asked for at the cluster's scope, where no object restricts it.
fn is_among(everywhere: &[&RbacUse], it: &RbacUse) -> bool {
    everywhere.iter().any(|other| {
        let (own, other_info) = (&it.info, &other.info);
        own.verb == other_info.verb
            && own.group == other_info.group
            && it.resource() == other.resource()
            && other.object().is_empty()
    })
}

/// Sorted; resources of a group that need the same verbs share a rule.
fn rules(uses: &[&RbacUse], with_names: bool) -> Vec<Value> {
    let mut shared: BTreeMap<(String, Vec<String>, Vec<String>), Vec<String>> = BTreeMap::new();
    for ((group, resource, names), verbs) in needs(uses, with_names) {
        let verbs = verbs.into_iter().collect();
        shared.entry((group, names, verbs)).or_default().push(resource);
    }
    let rule = |((group, names, verbs), resources): (_, Vec<String>)| {
        let (group, names, verbs): (String, Vec<String>, Vec<String>) = (group, names, verbs);
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    };
    shared.into_iter().map(rule).collect()
}

fn needs(uses: &[&RbacUse], with_names: bool) -> Needs {
    let mut objects: BTreeMap<(String, String, String), BTreeSet<String>> = BTreeMap::new();
    for it in uses.iter().filter(|it| it.info.is_resource_request) {
        let key = (it.info.group.clone(), it.resource(), it.info.verb.clone());
        objects.entry(key).or_default().insert(it.object().to_owned());
    }
    let mut needs = Needs::new();
    for ((group, resource, verb), names) in objects {
        // Where one request names none, all objects have to be allowed.
        let is_for_all = !with_names || names.contains("");
        let names = if is_for_all { vec![] } else { names.into_iter().collect() };
        needs.entry((group, resource, names)).or_default().insert(verb);
    }
    needs
}

/// Paths that are no resources.
fn urls(uses: &[&RbacUse]) -> Vec<Value> {
    let mut by_path: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for it in uses.iter().filter(|it| !it.info.is_resource_request) {
        by_path.entry(&it.info.path).or_default().insert(&it.info.verb);
    }
    let mut shared: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for (path, verbs) in by_path {
        shared.entry(verbs).or_default().push(path);
    }
    shared.into_iter().map(|(verbs, paths)| json!({"nonResourceURLs": paths, "verbs": verbs})).collect()
}

/// A role and its binding to the user.
fn bound(kind: &str, namespace: &str, user: &str, rules: Vec<Value>) -> [Value; 2] {
    let name = role_name(user);
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let version = format!("{RBAC}/v1");
    let role = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [subject(user)],
    });
    [role, binding]
}

fn subject(user: &str) -> Value {
    match user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
        Some((namespace, name)) => json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}),
        None => json!({"apiGroup": RBAC, "kind": "User", "name": user}),
    }
}

/// What an object can be called, after the user.
fn role_name(user: &str) -> String {
    let last = user.rsplit(':').next().unwrap_or(user).to_lowercase();
    let as_name = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = last.chars().map(as_name).collect();
    match name.trim_matches('-') {
        "" => "user".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::user::UserInfo;
    use apiserver::request::RequestInfo;
    use std::sync::Arc;

    fn uses(user: &str, lines: &[(&str, &str)]) -> Vec<RbacUse> {
        let user = Arc::new(UserInfo::authenticated(user, &[]));
        let info = |(method, path): &(&str, &str)| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let info = RequestInfo::new(&method.parse().unwrap(), path, query).unwrap();
            RbacUse { user: user.clone(), info: Arc::new(info) }
        };
        lines.iter().map(info).collect()
    }

    const ASKED: &[(&str, &str)] = &[
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/pods?watch=true"),
        ("GET", "/api/v1/namespaces/a/pods"),
        ("GET", "/api/v1/namespaces/a/configmaps/x"),
        ("PUT", "/api/v1/namespaces/a/configmaps/x"),
        ("GET", "/api/v1/namespaces/a/secrets/x"),
        ("PUT", "/api/v1/namespaces/a/secrets/x"),
        ("POST", "/apis/apps/v1/namespaces/b/deployments"),
        ("PATCH", "/apis/apps/v1/namespaces/b/deployments/web/status"),
        ("GET", "/apis"),
        ("GET", "/metrics"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ];

    #[test]
    fn a_role_is_no_wider_than_what_was_asked_for() {
        let objects =
            infer(&uses("system:serviceaccount:a:Op_1", ASKED), "system:serviceaccount:a:Op_1", false);
        let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        let expected = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding"];
        assert_eq!(kinds, expected);
        let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]});
        let metrics = json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]});
        assert_eq!(objects[0]["rules"], json!([pods, metrics]));
        assert_eq!(objects[1]["subjects"][0]["kind"], "ServiceAccount");
        assert_eq!(objects[2]["metadata"], json!({"name": "op-1", "namespace": "a"}));
        let shared =
            json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "update"]});
        assert_eq!(objects[2]["rules"], json!([shared]), "the list of pods is allowed everywhere");
        let status = json!({"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["patch"]});
        let create = json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]});
        assert_eq!(objects[4]["rules"], json!([create, status]));
        assert_eq!(infer(&uses("a", ASKED), "b", false), Vec::<Value>::new());
    }

    #[test]
    fn names_are_in_it_by_choice() {
        let objects = infer(&uses("op", ASKED), "op", true);
        let shared = json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "update"],
            "resourceNames": ["x"]});
        assert_eq!(objects[2]["rules"], json!([shared]));
        assert_eq!(objects[4]["rules"][0].get("resourceNames"), None, "a create names nothing in time");
        assert_eq!(objects[4]["rules"][1]["resourceNames"], json!(["web"]));
    }
}
