//! Roles, and bindings by subject, so that a request finds the grants of its user at once
//! (`pkg/registry/rbac/validation.DefaultRuleResolver`).
//!
//! Every change of an object changes only its own entries. Rules are parsed when they are first asked for.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use apimachinery::object::{Object, object_key};
use apimachinery::user::UserInfo;
use apis::rbac::bootstrap_policy::{BootstrapPolicy, PolicyRole};
use apis::views::rbac::{Binding, Role, RoleRef, Subject};

golang::text_error! {
    /// A role that a binding names and that is not there; in upstream's words.
    pub(super) struct MissingRole;
}

/// One of the four kinds of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// `roles`
    Roles,
    /// `clusterroles`
    ClusterRoles,
    /// `rolebindings`
    RoleBindings,
    /// `clusterrolebindings`
    ClusterRoleBindings,
}

/// All roles and bindings. Invariant: a binding is in `bindings` if and only if each of its subjects leads to
/// it in `grants`.
#[derive(Default)]
pub(super) struct RbacIndex {
    /// By key.
    roles: HashMap<String, RuleSource>,
    cluster_roles: HashMap<String, RuleSource>,
    /// Both kinds, by key; a ClusterRoleBinding's has no slash.
    bindings: HashMap<String, Arc<BoundRules>>,
    /// By namespace; empty for those of ClusterRoleBindings.
    grants: HashMap<String, BySubject>,
}

/// Where the rules of a role are read from when they are first asked for.
enum RuleSource {
    Stored(Arc<Object>),
    OfPolicy(&'static PolicyRole),
}

/// A binding.
struct BoundRules {
    namespace: String,
    name: String,
    view: Arc<Binding>,
}

#[derive(Default)]
struct BySubject {
    /// Each list by the names of the bindings, so that it is always the same one of two that allows.
    users: HashMap<String, Vec<Grant>>,
    groups: HashMap<String, Vec<Grant>>,
}

/// What one binding gives to one subject.
pub(super) struct Grant {
    binding: Arc<BoundRules>,
    role_is_clustered: bool,
    role_key: String,
    subject: usize,
    reason: OnceLock<Arc<str>>,
}

impl RbacIndex {
    /// What every cluster starts with.
    pub(super) fn of_policy(policy: &'static BootstrapPolicy) -> RbacIndex {
        let mut index = RbacIndex::default();
        for role in &policy.roles {
            let key = object_key(role.namespace, &role.name);
            let roles = if role.namespace.is_empty() { &mut index.cluster_roles } else { &mut index.roles };
            roles.insert(key, RuleSource::OfPolicy(role));
        }
        for binding in &policy.bindings {
            let (namespace, name) = (binding.namespace.to_owned(), binding.name.to_string());
            index.bind(BoundRules { namespace, name, view: binding.view.clone() });
        }
        index
    }

    /// An object is there, or changed.
    pub(super) fn set(&mut self, slot: Slot, object: Arc<Object>) {
        let key = object.key();
        self.remove(slot, &key);
        if let Some(roles) = self.roles_of(slot) {
            roles.insert(key, RuleSource::Stored(object));
            return;
        }
        let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
        self.bind(BoundRules { namespace, name, view: object.view() });
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, slot: Slot, key: &str) {
        if let Some(roles) = self.roles_of(slot) {
            roles.remove(key);
            return;
        }
        let Some(bound) = self.bindings.remove(key) else { return };
        let namespace = &bound.namespace;
        let Some(grants) = self.grants.get_mut(namespace) else { return };
        for subject in &bound.view.subjects {
            let Some((map, name)) = grants.of(subject, namespace) else { continue };
            if let Some(list) = map.get_mut(&name) {
                list.retain(|grant| !Arc::ptr_eq(&grant.binding, &bound));
                if list.is_empty() {
                    map.remove(&name);
                }
            }
        }
        if grants.users.is_empty() && grants.groups.is_empty() {
            self.grants.remove(namespace);
        }
    }

    /// These are all objects of a kind.
    pub(super) fn replace(&mut self, slot: Slot, objects: HashMap<String, Arc<Object>>) {
        for key in self.keys(slot).into_iter().filter(|key| !objects.contains_key(key)) {
            self.remove(slot, &key);
        }
        objects.into_values().for_each(|object| self.set(slot, object));
    }

    /// How many objects of a kind there are.
    pub(super) fn len(&self, slot: Slot) -> usize {
        match slot {
            Slot::Roles => self.roles.len(),
            Slot::ClusterRoles => self.cluster_roles.len(),
            Slot::RoleBindings | Slot::ClusterRoleBindings => {
                let is_namespaced = slot == Slot::RoleBindings;
                self.bindings.keys().filter(|key| key.contains('/') == is_namespaced).count()
            }
        }
    }

    /// The grants that `user` has in `namespace`, those of ClusterRoleBindings first
    /// (`VisitRulesFor`), with the role or the words that it is missing.
    pub(super) fn grants_of<'a>(
        &'a self,
        user: &'a UserInfo,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Grant, Result<Arc<Role>, MissingRole>)> {
        let places = ["", namespace].into_iter().take(if namespace.is_empty() { 1 } else { 2 });
        let grants = places.filter_map(|place| self.grants.get(place)).flat_map(|grants| {
            let own = grants.users.get(&*user.name).into_iter();
            own.chain(user.groups.iter().filter_map(|group| grants.groups.get(&**group))).flatten()
        });
        grants.map(|grant| (grant, self.role_of(grant)))
    }

    fn role_of(&self, grant: &Grant) -> Result<Arc<Role>, MissingRole> {
        let roles = if grant.role_is_clustered { &self.cluster_roles } else { &self.roles };
        roles.get(&grant.role_key).map(RuleSource::role).ok_or_else(|| {
            let kind = if grant.role_is_clustered { "clusterrole" } else { "role" };
            let name = &grant.binding.view.role_ref.name;
            format!("{kind}.rbac.authorization.k8s.io {name:?} not found").into()
        })
    }

    fn bind(&mut self, bound: BoundRules) {
        let bound = Arc::new(bound);
        let namespace = &bound.namespace;
        let RoleRef { kind, name, .. } = &bound.view.role_ref;
        let role_is_clustered = kind != "Role";
        let role_key = if role_is_clustered { name.clone() } else { object_key(namespace, name) };
        for (number, subject) in bound.view.subjects.iter().enumerate() {
            let grants = self.grants.entry(namespace.clone()).or_default();
            let Some((map, name)) = grants.of(subject, namespace) else { continue };
            let (binding, role_key) = (bound.clone(), role_key.clone());
            let reason = OnceLock::new();
            let grant = Grant { binding, role_is_clustered, role_key, subject: number, reason };
            let list = map.entry(name).or_default();
            let at = list.partition_point(|other| other.binding.name <= bound.name);
            list.insert(at, grant);
        }
        self.bindings.insert(object_key(namespace, &bound.name), bound.clone());
    }

    fn roles_of(&mut self, slot: Slot) -> Option<&mut HashMap<String, RuleSource>> {
        match slot {
            Slot::Roles => Some(&mut self.roles),
            Slot::ClusterRoles => Some(&mut self.cluster_roles),
            Slot::RoleBindings | Slot::ClusterRoleBindings => None,
        }
    }

    fn keys(&self, slot: Slot) -> Vec<String> {
        match slot {
            Slot::Roles => self.roles.keys().cloned().collect(),
            Slot::ClusterRoles => self.cluster_roles.keys().cloned().collect(),
            Slot::RoleBindings | Slot::ClusterRoleBindings => {
                let is_namespaced = slot == Slot::RoleBindings;
                self.bindings.keys().filter(|key| key.contains('/') == is_namespaced).cloned().collect()
            }
        }
    }
}

impl RuleSource {
    fn role(&self) -> Arc<Role> {
        match self {
            RuleSource::Stored(object) => object.view(),
            RuleSource::OfPolicy(role) => role.view(),
        }
    }
}

impl BySubject {
    /// Where the grants of a subject are; nowhere for a kind that does not exist.
    fn of(
        &mut self,
        subject: &Subject,
        namespace: &str,
    ) -> Option<(&mut HashMap<String, Vec<Grant>>, String)> {
        match subject.kind.as_str() {
            "User" => Some((&mut self.users, subject.name.clone())),
            "Group" => Some((&mut self.groups, subject.name.clone())),
            "ServiceAccount" => {
                let home = if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                let name = format!("system:serviceaccount:{home}:{}", subject.name);
                (!home.is_empty()).then_some((&mut self.users, name))
            }
            _ => None,
        }
    }
}

impl Grant {
    /// `RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "b" to Group "c"`
    pub(super) fn reason(&self) -> Arc<str> {
        self.reason.get_or_init(|| self.describe().into()).clone()
    }

    fn describe(&self) -> String {
        let BoundRules { namespace, name, view: binding } = &*self.binding;
        let described = match namespace.as_str() {
            "" => format!("ClusterRoleBinding {name:?}"),
            namespace => format!("RoleBinding \"{name}/{namespace}\""),
        };
        let Subject { kind, name, namespace: home, .. } = &binding.subjects[self.subject];
        let home = if home.is_empty() { namespace } else { home };
        let subject = match kind.as_str() {
            "ServiceAccount" => format!("{kind} \"{name}/{home}\""),
            _ => format!("{kind} {name:?}"),
        };
        let RoleRef { kind, name, .. } = &binding.role_ref;
        format!("RBAC: allowed by {described} of {kind} {name:?} to {subject}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(value: Value) -> Arc<Object> {
        Arc::new(Object::from_value(&value, vec![]).unwrap())
    }

    fn binding(name: &str, namespace: &str, role: (&str, &str), subjects: Value) -> Arc<Object> {
        object(json!({"metadata": {"name": name, "namespace": namespace},
            "roleRef": {"kind": role.0, "name": role.1}, "subjects": subjects}))
    }

    fn reasons(index: &RbacIndex, user: &UserInfo, namespace: &str) -> Vec<String> {
        let shown = |(grant, role): (&Grant, Result<Arc<Role>, MissingRole>)| match role {
            Ok(_) => grant.reason().to_string(),
            Err(missing) => missing.into(),
        };
        index.grants_of(user, namespace).map(shown).collect()
    }

    #[test]
    fn grants_come_and_go_with_their_bindings_and_roles() {
        let mut index = RbacIndex::default();
        let robot = UserInfo::authenticated("system:serviceaccount:here:robot", &["team"]);
        let subjects =
            json!([{"kind": "ServiceAccount", "name": "robot"}, {"kind": "Group", "name": "team"}]);
        index.set(Slot::RoleBindings, binding("b", "here", ("Role", "r"), subjects));
        let group = json!([{"kind": "Group", "name": "team"}]);
        index.set(Slot::ClusterRoleBindings, binding("c", "", ("ClusterRole", "r"), group));
        let missing = r#"role.rbac.authorization.k8s.io "r" not found"#;
        let missing_too = format!("cluster{missing}");
        assert_eq!(reasons(&index, &robot, "here"), [&missing_too, missing, missing]);
        index.set(Slot::Roles, object(json!({"metadata": {"name": "r", "namespace": "here"}})));
        index.set(Slot::ClusterRoles, object(json!({"metadata": {"name": "r"}})));
        let by = "RBAC: allowed by";
        assert_eq!(
            reasons(&index, &robot, "here"),
            [
                format!("{by} ClusterRoleBinding \"c\" of ClusterRole \"r\" to Group \"team\""),
                format!("{by} RoleBinding \"b/here\" of Role \"r\" to ServiceAccount \"robot/here\""),
                format!("{by} RoleBinding \"b/here\" of Role \"r\" to Group \"team\""),
            ]
        );
        assert_eq!(reasons(&index, &robot, "there").len(), 1);
        let nobody = json!([{"kind": "User", "name": "somebody"}]);
        index.set(Slot::RoleBindings, binding("b", "here", ("Role", "r"), nobody));
        index.replace(Slot::ClusterRoleBindings, HashMap::new());
        assert_eq!(reasons(&index, &robot, "here"), [""; 0]);
        index.remove(Slot::RoleBindings, "here/b");
        assert!(index.grants.is_empty() && index.bindings.is_empty());
    }
}
