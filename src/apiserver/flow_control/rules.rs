//! Which requests a FlowSchema is for (`util/flowcontrol/rule.go`).

use serde::Deserialize;

use crate::request::RequestInfo;
use apimachinery::user::UserInfo;

const ALL: &str = "*";

/// What is read of a FlowSchema.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlowSchemaView {
    /// Its spec.
    pub spec: FlowSchemaSpec,
    /// Its status.
    pub status: FlowSchemaStatus,
}

/// `FlowSchemaSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlowSchemaSpec {
    /// The smallest that matches wins.
    pub matching_precedence: i64,
    /// Where its requests go.
    pub priority_level_configuration: PriorityLevelReference,
    /// What tells one flow from another.
    pub distinguisher_method: Option<Distinguisher>,
    rules: Vec<FlowRule>,
}

/// `FlowSchemaStatus`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FlowSchemaStatus {
    /// `Dangling` is the only one.
    pub conditions: Vec<FlowSchemaCondition>,
}

/// A condition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FlowSchemaCondition {
    /// As `Dangling`.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
}

/// A name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PriorityLevelReference {
    /// As `workload-low`.
    pub name: String,
}

/// `FlowDistinguisherMethod`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Distinguisher {
    r#type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlowRule {
    subjects: Vec<FlowSubject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<NonResourceRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FlowSubject {
    kind: String,
    user: PriorityLevelReference,
    group: PriorityLevelReference,
    service_account: ServiceAccountSubject,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServiceAccountSubject {
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NonResourceRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
}

impl FlowSchemaSpec {
    /// Whether the request is one of its.
    pub(super) fn matches(&self, user: &UserInfo, info: &RequestInfo) -> bool {
        self.rules.iter().any(|rule| rule.matches(user, info))
    }

    /// What tells the request's flow from others of this schema; empty when all are one.
    pub(super) fn flow_of<'r>(&self, user: &'r UserInfo, info: &'r RequestInfo) -> &'r str {
        match self.distinguisher_method.as_ref().map(|method| method.r#type.as_str()) {
            Some("ByUser") => &user.name,
            Some("ByNamespace") => &info.namespace,
            _ => "",
        }
    }
}

impl FlowRule {
    fn matches(&self, user: &UserInfo, info: &RequestInfo) -> bool {
        if !self.subjects.iter().any(|subject| subject.matches(user)) {
            return false;
        }
        if info.is_resource_request {
            self.resource_rules.iter().any(|rule| rule.matches(info))
        } else {
            self.non_resource_rules.iter().any(|rule| rule.matches(info))
        }
    }
}

impl FlowSubject {
    fn matches(&self, user: &UserInfo) -> bool {
        match self.kind.as_str() {
            "User" => self.user.name == ALL || *self.user.name == *user.name,
            "Group" => self.group.name == ALL || user.is_member_of(&self.group.name),
            "ServiceAccount" => self.service_account.matches(&user.name),
            _ => false,
        }
    }
}

impl ServiceAccountSubject {
    fn matches(&self, user: &str) -> bool {
        let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        account.is_some_and(|(namespace, name)| {
            self.namespace == namespace && (self.name == ALL || self.name == name)
        })
    }
}

impl ResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let resource = |wanted: &String| match info.subresource.as_str() {
            "" => *wanted == info.resource,
            subresource => wanted.split_once('/') == Some((info.resource.as_str(), subresource)),
        };
        has(&self.verbs, &info.verb)
            && (is_all(&self.resources) || self.resources.iter().any(resource))
            && has(&self.api_groups, &info.group)
            && match info.namespace.as_str() {
                "" => self.cluster_scope,
                namespace => has(&self.namespaces, namespace),
            }
    }
}

impl NonResourceRule {
    fn matches(&self, info: &RequestInfo) -> bool {
        let is_at = |url: &String| {
            url == ALL || *url == info.path || {
                let prefix = url.strip_suffix('*').unwrap_or(url).trim_end_matches('/');
                info.path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
            }
        };
        has(&self.verbs, &info.verb) && self.non_resource_urls.iter().any(is_at)
    }
}

fn has(list: &[String], one: &str) -> bool {
    is_all(list) || list.iter().any(|item| item == one)
}

fn is_all(list: &[String]) -> bool {
    matches!(list, [all] if all == ALL)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn matches(subject: Value, rule: Value, user: &UserInfo, method: &str, path: &str) -> bool {
        let is_resource = rule["nonResourceURLs"].is_null();
        let rules = if is_resource { "resourceRules" } else { "nonResourceRules" };
        let spec = json!({"rules": [{"subjects": [subject], rules: [rule]}]});
        let spec: FlowSchemaSpec = serde_json::from_value(spec).unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        spec.matches(user, &RequestInfo::new(&method.parse().unwrap(), path, query).unwrap())
    }

    #[test]
    fn a_schema_is_for_its_subjects_and_their_requests() {
        let user = UserInfo::service_account("kube-system", "builder");
        let everybody = || json!({"kind": "Group", "group": {"name": "system:authenticated"}});
        let pods = || {
            json!({"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods", "pods/log"],
                "namespaces": ["a"]})
        };
        let cases = [
            (everybody(), pods(), "GET", "/api/v1/namespaces/a/pods", true),
            (everybody(), pods(), "GET", "/api/v1/namespaces/a/pods?watch=1", true),
            (everybody(), pods(), "GET", "/api/v1/namespaces/a/pods/p", false),
            (everybody(), pods(), "GET", "/api/v1/namespaces/b/pods", false),
            (everybody(), pods(), "GET", "/api/v1/pods", false),
            (everybody(), pods(), "GET", "/api/v1/namespaces/a/services", false),
            (everybody(), pods(), "GET", "/healthz", false),
            (
                everybody(),
                json!({"verbs": ["*"], "nonResourceURLs": ["/healthz/*"]}),
                "GET",
                "/healthz/a",
                true,
            ),
            (
                everybody(),
                json!({"verbs": ["*"], "nonResourceURLs": ["/healthz/*"]}),
                "GET",
                "/healthzs",
                false,
            ),
            (
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}),
                pods(),
                "GET",
                "/api/v1/namespaces/a/pods",
                true,
            ),
            (
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube", "name": "*"}}),
                pods(),
                "GET",
                "/api/v1/namespaces/a/pods",
                false,
            ),
            (
                json!({"kind": "User", "user": {"name": "jane"}}),
                pods(),
                "GET",
                "/api/v1/namespaces/a/pods",
                false,
            ),
        ];
        for (subject, rule, method, path, expected) in cases {
            assert_eq!(matches(subject.clone(), rule, &user, method, path), expected, "{subject} {path}");
        }
    }
}
