//! Rules: which operations on which resources (`plugin/webhook/predicates/rules`).

use serde::Deserialize;
use serde_json::Value;

use crate::admission::Operation;
use apimachinery::object::nullable;
use apis::kind::Kind;

/// `admissionregistration.NamedRuleWithOperations`; a webhook's rule has no names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Rule {
    #[serde(deserialize_with = "nullable")]
    operations: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    api_groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    api_versions: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    resources: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    resource_names: Vec<String>,
    scope: Option<String>,
}

/// What a rule is held against.
pub(super) struct RuleAttributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// To which kind; the rules may be asked about an equivalent one.
    pub kind: &'a Kind,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// The object's name, where it is known.
    pub name: &'a str,
}

impl Rule {
    /// The rules of a list; what cannot be read matches nothing.
    pub(super) fn list(tree: &Value) -> Vec<Rule> {
        let rules = tree.as_array().into_iter().flatten();
        rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
    }

    /// Whether it is about this.
    pub(super) fn matches(&self, asked: &RuleAttributes) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|item| item == "*" || item == value);
        let version = &asked.kind.group_version;
        has(&self.operations, asked.operation.name())
            && has(&self.api_groups, &version.group)
            && has(&self.api_versions, &version.version)
            && self.resources.iter().any(|resource| names(resource, asked))
            && self.is_in_scope(asked.kind)
            && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == asked.name))
    }

    fn is_in_scope(&self, kind: &Kind) -> bool {
        match self.scope.as_deref() {
            Some("Namespaced") => kind.namespaced,
            Some("Cluster") => !kind.namespaced,
            _ => true,
        }
    }
}

fn names(resource: &str, asked: &RuleAttributes) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    (resource == "*" || resource == &*asked.kind.plural)
        && (subresource == "*" || subresource == asked.subresource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::apps::deployment::DEPLOYMENTS;
    use apis::core::namespace::NAMESPACES;
    use apis::core::pod::PODS;
    use serde_json::json;

    #[test]
    fn rules_match_as_upstreams() {
        let rule = |resources: &[&str], scope: &str| {
            let rule = json!({"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["v1"],
                "resources": resources, "scope": scope});
            Rule::list(&json!([rule])).remove(0)
        };
        for (resources, scope, kind, subresource, expected) in [
            (&["pods"][..], "*", &PODS, "", true),
            (&["pods"], "*", &PODS, "status", false),
            (&["pods/*"], "*", &PODS, "status", true),
            (&["pods/*"], "*", &PODS, "", true),
            (&["*"], "*", &PODS, "status", false),
            (&["*/status"], "*", &DEPLOYMENTS, "status", true),
            (&["*/*"], "Namespaced", &DEPLOYMENTS, "scale", true),
            (&["*"], "Cluster", &DEPLOYMENTS, "", false),
            (&["*"], "Cluster", &NAMESPACES, "", true),
        ] {
            let asked = RuleAttributes { operation: Operation::Create, kind, subresource, name: "" };
            assert_eq!(rule(resources, scope).matches(&asked), expected, "{resources:?} {scope}");
            let asked = RuleAttributes { operation: Operation::Delete, ..asked };
            assert!(!rule(resources, scope).matches(&asked));
        }
    }
}
