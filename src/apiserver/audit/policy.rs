//! The audit policy (`audit.k8s.io/v1` Policy): how much of which request is told
//! (`k8s.io/apiserver/pkg/audit/policy`).

use serde::Deserialize;
use serde_json::Value;

use crate::audit_context::Level;
use crate::request::RequestInfo;
use apimachinery::object::nullable;
use apimachinery::user::UserInfo;
use apimachinery::yaml;

golang::text_error! {
    /// What is wrong with a policy of auditing; in upstream's words.
    pub struct BadAuditPolicy;
}

/// When in a request something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
pub enum AuditStage {
    /// Before it is worked on.
    RequestReceived,
    /// The answer's head is sent, its body goes on: watches.
    ResponseStarted,
    /// It is answered.
    ResponseComplete,
    /// The server panicked.
    Panic,
}

/// Rules; the first that matches counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    #[serde(deserialize_with = "nullable")]
    rules: Vec<AuditRule>,
    #[serde(deserialize_with = "nullable")]
    omit_stages: Vec<AuditStage>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AuditRule {
    level: Level,
    #[serde(deserialize_with = "nullable")]
    users: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    user_groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    resources: Vec<GroupResources>,
    #[serde(deserialize_with = "nullable")]
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs", deserialize_with = "nullable")]
    non_resource_urls: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    omit_stages: Vec<AuditStage>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupResources {
    group: String,
    #[serde(deserialize_with = "nullable")]
    resources: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    resource_names: Vec<String>,
}

/// What the policy says of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditVerdict {
    /// How much.
    pub level: Level,
    /// Not at these stages.
    pub omit_stages: Vec<AuditStage>,
    /// Without managed fields.
    pub omit_managed_fields: bool,
}

impl Policy {
    /// Reads the file's text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(yaml: &str) -> Result<Policy, BadAuditPolicy> {
        let tree: Value = yaml::from_str(yaml).map_err(|error| format!("failed decoding: {error}"))?;
        let (api_version, kind) = (&tree["apiVersion"], &tree["kind"]);
        if api_version != "audit.k8s.io/v1" || kind != "Policy" {
            return Err(format!("unknown group version field {api_version} in policy configuration").into());
        }
        for (at, rule) in tree["rules"].as_array().into_iter().flatten().enumerate() {
            check(rule, at)?;
        }
        let policy = Policy::deserialize(&tree).map_err(|error| format!("failed decoding: {error}"))?;
        if policy.rules.is_empty() { Err("loaded illegal policy with 0 rules".into()) } else { Ok(policy) }
    }

    /// What is to be told of a request; nothing where no rule speaks of it.
    pub fn evaluate(&self, user: &UserInfo, info: &RequestInfo) -> AuditVerdict {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(user, info)) else {
            return AuditVerdict::default();
        };
        AuditVerdict {
            level: rule.level,
            omit_stages: self.omit_stages.iter().chain(&rule.omit_stages).copied().collect(),
            omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
        }
    }
}

fn check(rule: &Value, at: usize) -> Result<(), String> {
    let levels = ["None", "Metadata", "Request", "RequestResponse"];
    match rule["level"].as_str() {
        None => return Err(format!("rules[{at}].level: Required value")),
        Some(level) if !levels.contains(&level) => {
            return Err(format!(
                "rules[{at}].level: Unsupported value: {level:?}: supported values: \"Metadata\", \"None\", \
                 \"Request\", \"RequestResponse\""
            ));
        }
        Some(_) => {}
    }
    let is_given = |field: &str| rule[field].as_array().is_some_and(|list| !list.is_empty());
    if is_given("nonResourceURLs") && (is_given("resources") || is_given("namespaces")) {
        return Err(format!(
            "rules[{at}].nonResourceURLs: Invalid value: {}: rules cannot apply to both regular resources and \
             non-resource URLs",
            rule["nonResourceURLs"]
        ));
    }
    for (nth, url) in rule["nonResourceURLs"].as_array().into_iter().flatten().enumerate() {
        let url = url.as_str().unwrap_or_default();
        let path = format!("rules[{at}].nonResourceURLs[{nth}]: Invalid value: {url:?}");
        if url != "*" && !url.starts_with('/') {
            return Err(format!("{path}: non-resource URL rules must begin with a '/' character"));
        }
        if url.trim_end_matches('*').contains('*') || url.ends_with("**") {
            return Err(format!(
                "{path}: non-resource URL wildcards '*' must be the final character of the rule"
            ));
        }
    }
    Ok(())
}

impl AuditRule {
    fn matches(&self, user: &UserInfo, info: &RequestInfo) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|item| item == value);
        let in_group = |group: &std::sync::Arc<str>| has(&self.user_groups, group);
        if !self.users.is_empty() && !has(&self.users, &user.name)
            || !self.user_groups.is_empty() && !user.groups.iter().any(in_group)
            || !self.verbs.is_empty() && !has(&self.verbs, &info.verb)
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return info.is_resource_request
                && (self.namespaces.is_empty() || has(&self.namespaces, &info.namespace))
                && (self.resources.is_empty() || self.resources.iter().any(|group| group.names(info)));
        }
        if !self.non_resource_urls.is_empty() {
            let url = |pattern: &String| match pattern.strip_suffix('*') {
                Some(prefix) => info.path.starts_with(prefix),
                None => *pattern == info.path,
            };
            return !info.is_resource_request && self.non_resource_urls.iter().any(url);
        }
        true
    }
}

impl GroupResources {
    fn names(&self, info: &RequestInfo) -> bool {
        if self.group != info.group {
            return false;
        }
        let is_named = self.resource_names.is_empty() || self.resource_names.contains(&info.name);
        let matches = |resource: &String| {
            let whole = match info.subresource.as_str() {
                "" => *resource == info.resource,
                subresource => *resource == format!("{}/{subresource}", info.resource),
            };
            let (of_any, any_of) = (resource.strip_prefix("*/"), resource.strip_suffix("/*"));
            whole
                || resource == "*"
                || !info.subresource.is_empty() && of_any == Some(&info.subresource)
                || any_of == Some(&info.resource)
        };
        self.resources.is_empty() || is_named && self.resources.iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ['system:kube-proxy']
  verbs: [watch]
  resources: [{group: '', resources: [endpoints]}]
- {level: None, nonResourceURLs: ['/healthz*', '/version']}
- {level: Metadata, resources: [{group: '', resources: [secrets, configmaps]}]}
- level: Request
  resources: [{group: '', resources: ['pods/*'], resourceNames: [special]}]
  omitStages: [Panic]
- {level: RequestResponse, resources: [{group: apps}], namespaces: [prod, '']}
- {level: Metadata, userGroups: ['system:authenticated'], omitManagedFields: true}
";

    #[test]
    fn the_first_rule_that_matches_counts() {
        let policy = Policy::parse(POLICY).unwrap();
        let jane = UserInfo::authenticated("jane", &[]);
        let proxy = UserInfo::authenticated("system:kube-proxy", &[]);
        for (user, line, level) in [
            (&proxy, "GET /api/v1/endpoints?watch=1", Level::None),
            (&jane, "GET /api/v1/endpoints?watch=1", Level::Metadata),
            (&jane, "GET /healthz/ping", Level::None),
            (&jane, "GET /version", Level::None),
            (&jane, "GET /metrics", Level::Metadata),
            (&jane, "PUT /api/v1/namespaces/a/secrets/s", Level::Metadata),
            (&jane, "GET /api/v1/namespaces/a/pods/special/log", Level::Request),
            (&jane, "GET /api/v1/namespaces/a/pods/other/log", Level::Metadata),
            (&jane, "POST /apis/apps/v1/namespaces/prod/deployments", Level::RequestResponse),
            (&jane, "POST /apis/apps/v1/namespaces/test/deployments", Level::Metadata),
            (&UserInfo::anonymous(), "GET /metrics", Level::None),
        ] {
            let (method, url) = line.split_once(' ').unwrap();
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let info = RequestInfo::new(&method.parse().unwrap(), path, query).unwrap();
            assert_eq!(policy.evaluate(user, &info).level, level, "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let with = |rules: &str| format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: {rules}");
        for (text, wanted) in [
            (with("[]"), "loaded illegal policy with 0 rules"),
            (with("[{users: [a]}]"), "rules[0].level: Required value"),
            (
                with("[{level: Metadata, nonResourceURLs: ['/a*b']}]"),
                "rules[0].nonResourceURLs[0]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be \
                 the final character of the rule",
            ),
        ] {
            assert_eq!(Policy::parse(&text).unwrap_err(), wanted);
        }
        assert!(Policy::parse("apiVersion: audit.k8s.io/v1beta1\nkind: Policy").is_err());
    }
}
