//! Reads `manifests/bootstrap/rbac.txt`, whose head says how it is written.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::rbac::policy_rule::PolicyRule;
use crate::views::rbac::{Binding, Role, RoleRef, Subject};

const TABLE: &str = include_str!("../../../../manifests/bootstrap/rbac.txt");
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

/// The group of roles and bindings, and of users and groups among their subjects.
pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// A constant that is worked out when it is first needed: every cluster starts with the same.
pub static POLICY: LazyLock<BootstrapPolicy> = LazyLock::new(BootstrapPolicy::read);

/// The whole table.
pub struct BootstrapPolicy {
    /// Roles and ClusterRoles; one that gathers rules stands behind those that it gathers from.
    pub roles: Vec<PolicyRole>,
    /// RoleBindings and ClusterRoleBindings.
    pub bindings: Vec<PolicyBinding>,
}

/// A Role or ClusterRole of the table.
pub struct PolicyRole {
    /// Empty for a ClusterRole.
    pub namespace: &'static str,
    /// As `system:discovery`.
    pub name: Cow<'static, str>,
    /// As `aggregate-to-view`.
    pub labels: Vec<&'static str>,
    /// The label of those whose rules it gathers, if it does.
    pub selected: Option<&'static str>,
    /// The lines of its rules.
    lines: &'static str,
    view: OnceLock<Arc<Role>>,
}

/// A RoleBinding or ClusterRoleBinding of the table.
pub struct PolicyBinding {
    /// Empty for a ClusterRoleBinding.
    pub namespace: &'static str,
    /// As `system:node-proxier`.
    pub name: Cow<'static, str>,
    /// Whom it binds to what.
    pub view: Arc<Binding>,
}

impl BootstrapPolicy {
    fn read() -> BootstrapPolicy {
        let mut policy = BootstrapPolicy { roles: Vec::with_capacity(100), bindings: Vec::with_capacity(80) };
        let mut rest = TABLE;
        while let Some((head, lines)) = next_entry(&mut rest) {
            policy.add(head, lines);
        }
        policy
    }

    fn add(&mut self, head: &'static str, lines: &'static str) {
        let words: Vec<&'static str> = head.split(' ').collect();
        match words.as_slice() {
            ["ClusterRole", name, labels @ ..] => self.role("", *name, labels, None, lines),
            ["Aggregated", name, selected, labels @ ..] => {
                self.role("", *name, labels, Some(selected), lines);
            }
            ["Controller", name] => {
                let role = format!("system:controller:{name}");
                self.role("", role.clone(), &[], None, lines);
                let account = service_account("kube-system", name);
                self.bind("", role.clone(), ("ClusterRole", role), vec![account]);
            }
            ["ClusterRoleBinding", name, subjects @ ..] => {
                let subjects = subjects.iter().map(|text| subject(text)).collect();
                self.bind("", *name, ("ClusterRole", name.to_string()), subjects);
            }
            ["Role", namespace, name] => self.role(namespace, *name, &[], None, lines),
            ["RoleBinding", namespace, name, role, subjects @ ..] => {
                let subjects = subjects.iter().map(|text| subject(text)).collect();
                self.bind(namespace, *name, ("Role", role.to_string()), subjects);
            }
            _ => unreachable!("a line of the table that nobody knows: {head}"),
        }
    }

    fn role(
        &mut self,
        namespace: &'static str,
        name: impl Into<Cow<'static, str>>,
        labels: &[&'static str],
        selected: Option<&'static str>,
        lines: &'static str,
    ) {
        let (name, labels, view) = (name.into(), labels.to_vec(), OnceLock::new());
        self.roles.push(PolicyRole { namespace, name, labels, selected, lines, view });
    }

    fn bind(
        &mut self,
        namespace: &'static str,
        name: impl Into<Cow<'static, str>>,
        (kind, role): (&str, String),
        subjects: Vec<Subject>,
    ) {
        let role_ref = RoleRef { api_group: GROUP.into(), kind: kind.into(), name: role };
        let view = Arc::new(Binding { subjects, role_ref });
        self.bindings.push(PolicyBinding { namespace, name: name.into(), view });
    }

    /// What the aggregation controller would gather: the rules of all that bear the label, by name, each
    /// once.
    fn gathered(&self, label: &str) -> Vec<PolicyRule> {
        let mut parts: Vec<&PolicyRole> =
            self.roles.iter().filter(|role| role.labels.contains(&label)).collect();
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut rules: Vec<PolicyRule> = Vec::new();
        for rule in parts.iter().flat_map(|part| part.rules_in(self)) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }
}

impl PolicyRole {
    /// What it allows, read when it is first asked for.
    pub fn view(&self) -> Arc<Role> {
        let read = || Arc::new(Role { rules: self.rules_in(&POLICY), aggregation_rule: None });
        self.view.get_or_init(read).clone()
    }

    /// What it allows; of one that gathers rules, what it would have gathered.
    pub fn rules(&self) -> Vec<PolicyRule> {
        self.rules_in(&POLICY)
    }

    fn rules_in(&self, policy: &BootstrapPolicy) -> Vec<PolicyRule> {
        match self.selected {
            Some(label) => policy.gathered(label),
            None => self.lines.lines().map(str::trim_start).filter(|line| is_read(line)).map(rule).collect(),
        }
    }
}

/// The next line at the margin, and the indented ones behind it.
fn next_entry(rest: &mut &'static str) -> Option<(&'static str, &'static str)> {
    loop {
        let text = *rest;
        if text.is_empty() {
            return None;
        }
        let (head, behind) = text.split_once('\n').unwrap_or((text, ""));
        *rest = behind;
        if !is_read(head) {
            continue;
        }
        let is_rule = |line: &&str| line.starts_with(' ');
        let length = behind.split_inclusive('\n').take_while(is_rule).map(str::len).sum();
        let (lines, behind) = behind.split_at(length);
        *rest = behind;
        return Some((head, lines));
    }
}

/// Neither empty nor a comment.
fn is_read(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn subject(text: &str) -> Subject {
    match text.split_once(':') {
        Some(("ServiceAccount", account)) => {
            let (namespace, name) = account.split_once('/').expect("an account of the table has a namespace");
            service_account(namespace, name)
        }
        Some((kind, name)) => {
            Subject { api_group: GROUP.into(), kind: kind.into(), name: name.into(), ..Subject::default() }
        }
        None => unreachable!("a subject of the table has a kind: {text}"),
    }
}

fn service_account(namespace: &str, name: &str) -> Subject {
    let (kind, api_group) = ("ServiceAccount".into(), String::new());
    Subject { kind, api_group, name: name.into(), namespace: namespace.into() }
}

/// One line: verbs, groups, resources, names.
fn rule(line: &str) -> PolicyRule {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["events"] => PolicyRule {
            api_groups: vec!["".into(), "events.k8s.io".into()],
            resources: vec!["events".into()],
            verbs: verbs("create,patch,update"),
            ..PolicyRule::default()
        },
        [words, "url", paths] => {
            PolicyRule { non_resource_urls: list(paths), verbs: verbs(words), ..PolicyRule::default() }
        }
        [words, groups, resources, names @ ..] => PolicyRule {
            api_groups: groups
                .split(',')
                .map(|group| if group == "core" { "" } else { group }.into())
                .collect(),
            resource_names: names.first().map(|names| list(names)).unwrap_or_default(),
            resources: list(resources),
            verbs: verbs(words),
            ..PolicyRule::default()
        },
        _ => unreachable!("a rule of the table that nobody knows: {line}"),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// Sorted, as upstream's builder leaves them.
fn verbs(text: &str) -> Vec<String> {
    let mut verbs = Vec::new();
    for word in text.split(',') {
        match word {
            "read" => verbs.extend(READ),
            "write" => verbs.extend(WRITE),
            other => verbs.push(other),
        }
    }
    verbs.sort_unstable();
    verbs.into_iter().map(str::to_owned).collect()
}
