//! `PolicyRule`: what a rule allows, which rules another covers, and how rules are shown (`pkg/apis/rbac/v1`
//! evaluation helpers, `component-helpers/auth/rbac/validation`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use apimachinery::object::nullable;

/// Everything: verbs, groups, resources, paths.
pub const ALL: &str = "*";

/// `rbacv1.PolicyRule`
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// What may be done; `*` is everything.
    #[serde(deserialize_with = "nullable")]
    pub verbs: Vec<String>,
    /// In which groups; `*` is all.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// To what: `pods`, `pods/log`, `*/scale`, `*`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Only to these objects; empty is all.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths that are no resources; a trailing `*` matches the rest.
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

/// What a request to a resource asks for, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct ResourceRequest<'a> {
    /// As `get`.
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Empty where no single object is asked for.
    pub name: &'a str,
}

impl PolicyRule {
    /// Everything there is.
    pub fn everything() -> Vec<PolicyRule> {
        let all = || vec![ALL.to_owned()];
        let resources =
            PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() };
        vec![resources, PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() }]
    }

    /// Whether it allows a request to a resource.
    pub fn allows(&self, request: ResourceRequest) -> bool {
        has(&self.verbs, request.verb)
            && has(&self.api_groups, request.group)
            && self.resources.iter().any(|rule| resource_matches(rule, request.resource, request.subresource))
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == request.name))
    }

    /// Whether it allows `verb` on a path that is no resource.
    pub fn allows_path(&self, verb: &str, path: &str) -> bool {
        has(&self.verbs, verb) && self.non_resource_urls.iter().any(|rule| path_matches(rule, path))
    }

    /// One rule for each thing that it allows (`BreakdownRule`).
    fn broken_down(&self) -> Vec<PolicyRule> {
        let one = |text: &String| vec![text.clone()];
        let mut rules = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let rule = PolicyRule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..PolicyRule::default()
                    };
                    let named = |name| PolicyRule { resource_names: one(name), ..rule.clone() };
                    if self.resource_names.is_empty() {
                        rules.push(rule)
                    } else {
                        rules.extend(self.resource_names.iter().map(named))
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            let of_verb =
                |verb| PolicyRule { verbs: one(verb), non_resource_urls: one(url), ..PolicyRule::default() };
            rules.extend(self.verbs.iter().map(of_verb));
        }
        rules
    }

    /// Whether it allows all that `wanted`, a rule for one thing, does (`ruleCovers`).
    fn covers(&self, wanted: &PolicyRule) -> bool {
        let all = |own: &[String], wanted: &[String]| {
            own.iter().any(|item| item == ALL) || wanted.iter().all(|item| own.contains(item))
        };
        let names = if wanted.resource_names.is_empty() {
            self.resource_names.is_empty()
        } else {
            self.resource_names.is_empty()
                || wanted.resource_names.iter().all(|name| self.resource_names.contains(name))
        };
        let resource = |wanted: &String| {
            let across = || wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
            self.resources.contains(wanted) || across().is_some_and(|rule| self.resources.contains(&rule))
        };
        let url = |wanted: &String| self.non_resource_urls.iter().any(|own| path_matches(own, wanted));
        all(&self.verbs, &wanted.verbs)
            && all(&self.api_groups, &wanted.api_groups)
            && (self.resources.iter().any(|item| item == ALL) || wanted.resources.iter().all(resource))
            && names
            && wanted.non_resource_urls.iter().all(url)
    }

    /// As upstream shows a rule: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`
    /// (`CompactString`).
    pub fn shown(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let part = |(name, values): &(&str, &Vec<String>)| format!("{name}:{}", quoted(values));
        let parts: Vec<String> = parts.iter().filter(|(_, values)| !values.is_empty()).map(part).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// What of `wanted` none of `held` covers, a rule for each thing (`validation.Covers`).
pub fn uncovered(held: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    let simple = wanted.iter().flat_map(PolicyRule::broken_down);
    simple.filter(|rule| !held.iter().any(|owner| owner.covers(rule))).collect()
}

/// Permissions in fewer rules: the verbs of one resource together (`validation.CompactRules`).
/// Ordered as they are shown.
pub fn compact(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let (mut compacted, mut simple): (Vec<PolicyRule>, BTreeMap<_, PolicyRule>) = Default::default();
    for rule in rules {
        let is_simple = rule.resource_names.len() <= 1
            && rule.non_resource_urls.is_empty()
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        if !is_simple {
            compacted.push(rule);
            continue;
        }
        let key = (rule.api_groups.clone(), rule.resources.clone(), rule.resource_names.clone());
        match simple.get_mut(&key) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => drop(simple.insert(key, rule)),
        }
    }
    compacted.extend(simple.into_values());
    let shown: BTreeSet<(String, PolicyRule)> =
        compacted.into_iter().map(|rule| (rule.shown(), rule)).collect();
    shown.into_iter().map(|(_, rule)| rule).collect()
}

/// Go's `%q` of a list of strings.
pub fn quoted<T: AsRef<str>>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("{:?}", value.as_ref())).collect();
    format!("[{}]", values.join(" "))
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|item| item == ALL || item == value)
}

fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    match rule.split_once('/') {
        None => subresource.is_empty() && rule == resource,
        Some((of, below)) => !subresource.is_empty() && below == subresource && (of == ALL || of == resource),
    }
}

fn path_matches(rule: &str, path: &str) -> bool {
    if rule.ends_with('*') { path.starts_with(rule.trim_end_matches('*')) } else { rule == path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(value: serde_json::Value) -> Vec<PolicyRule> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rules_are_matched_as_upstream() {
        let rule = |value| rules(json!([value])).remove(0);
        let scale = rule(json!({"verbs": ["*"], "apiGroups": ["apps"], "resources": ["*/scale"]}));
        let named = rule(json!({"verbs": ["delete"], "apiGroups": [""], "resources": ["configmaps"],
            "resourceNames": ["mine"]}));
        let literal = rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]}));
        for (rule, verb, group, resource, subresource, name, allowed) in [
            (&scale, "update", "apps", "deployments", "scale", "d", true),
            (&scale, "update", "apps", "deployments", "", "d", false),
            (&scale, "update", "", "replicationcontrollers", "scale", "d", false),
            (&named, "delete", "", "configmaps", "", "mine", true),
            (&named, "delete", "", "configmaps", "", "other", false),
            (&named, "delete", "", "configmaps", "", "", false),
            // Upstream knows no star behind the slash.
            (&literal, "get", "", "pods", "log", "p", false),
        ] {
            let request = ResourceRequest { verb, group, resource, subresource, name };
            assert_eq!(rule.allows(request), allowed, "{request:?}");
        }
        let paths = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/api*"]}));
        for (path, allowed) in [("/healthz", true), ("/healthz/etcd", false), ("/apis/apps", true)] {
            assert_eq!(paths.allows_path("get", path), allowed, "{path}");
        }
    }

    #[test]
    fn what_is_not_covered_is_named() {
        let held = rules(json!([
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/scale"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}]));
        let wanted = rules(json!([
            {"verbs": ["get", "list", "delete"], "apiGroups": [""], "resources": ["pods", "deployments/scale"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine", "yours"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics/slis", "/healthz"]}]));
        let missing = compact(uncovered(&held, &wanted));
        let shown: Vec<String> = missing.iter().map(PolicyRule::shown).collect();
        assert_eq!(
            shown,
            [
                r#"{APIGroups:[""], Resources:["deployments/scale"], Verbs:["delete"]}"#,
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["yours"], Verbs:["get"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/healthz"], Verbs:["get"]}"#,
            ]
        );
        assert!(uncovered(&PolicyRule::everything(), &wanted).is_empty());
        assert_eq!(quoted(&["a", "b"]), r#"["a" "b"]"#);
    }
}
