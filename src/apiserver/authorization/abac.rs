//! The ABAC authorizer (`pkg/auth/authorizer/abac`): policies in a file, one a line, read once at the start.

use std::path::Path;

use serde::Deserialize;

use crate::authorizer::{Authorizer, AuthorizerReply, Decision, UserRules};
use crate::request::RequestInfo;
use apimachinery::user::UserInfo;
use apis::rbac::policy_rule::PolicyRule;

golang::text_error! {
    /// What is wrong with a file of policies, and where.
    pub(super) struct BadPolicyFile;
}

/// As in `--authorization-mode`.
const MODE: &str = "ABAC";
const API_VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
const AUTHENTICATED: &str = "system:authenticated";

/// Decides by a list of policies.
pub(super) struct Abac {
    policies: Vec<AbacPolicy>,
}

/// One line of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AbacLine {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    spec: AbacPolicy,
}

/// `abac.PolicySpec`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AbacPolicy {
    user: String,
    group: String,
    readonly: bool,
    #[serde(rename = "apiGroup")]
    api_group: String,
    resource: String,
    namespace: String,
    #[serde(rename = "nonResourcePath")]
    non_resource_path: String,
}

/// What stood in the file before there were versions.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Unversioned {
    user: String,
    group: String,
    readonly: bool,
    resource: String,
    namespace: String,
}

impl Abac {
    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn read(path: &Path) -> Result<Abac, BadPolicyFile> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("open {shown}: {error}"))?;
        Abac::parse(&text).map_err(|(number, line, why)| {
            format!("error reading policy file {shown}, line {number}: {line}: {why}").into()
        })
    }

    fn parse(text: &str) -> Result<Abac, (usize, String, String)> {
        let mut policies = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            policies.push(AbacPolicy::parse(line).map_err(|why| (number, line.to_owned(), why))?);
        }
        Ok(Abac { policies })
    }
}

impl Authorizer for Abac {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        let is_allowed = self.policies.iter().any(|policy| policy.is_about(user) && policy.allows(info));
        AuthorizerReply::Now(if is_allowed {
            Decision::allowed_by(MODE)
        } else {
            Decision::NoOpinion("No policy matched.".into())
        })
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        let mut rules = Vec::new();
        let of_user = self.policies.iter().filter(|policy| policy.is_about(user));
        for policy in of_user.filter(|policy| policy.namespace == "*" || policy.namespace == namespace) {
            let verbs: &[&str] = if policy.readonly { &["get", "list", "watch"] } else { &["*"] };
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            if !policy.resource.is_empty() {
                rules.push(PolicyRule {
                    verbs: texts(verbs),
                    api_groups: texts(&[&policy.api_group]),
                    resources: texts(&[&policy.resource]),
                    ..PolicyRule::default()
                });
            }
            if !policy.non_resource_path.is_empty() {
                rules.push(PolicyRule {
                    verbs: texts(verbs),
                    non_resource_urls: texts(&[&policy.non_resource_path]),
                    ..PolicyRule::default()
                });
            }
        }
        UserRules { rules, ..UserRules::default() }
    }
}

impl AbacPolicy {
    fn parse(line: &str) -> Result<AbacPolicy, String> {
        let read: AbacLine = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let mut policy = match (read.api_version.as_deref(), read.kind.as_deref()) {
            (Some(API_VERSION), Some("Policy")) => read.spec,
            (None, None) => {
                let old: Unversioned = serde_json::from_str(line).map_err(|error| error.to_string())?;
                AbacPolicy::from(old)
            }
            (version, kind) => {
                let (kind, version) = (kind.unwrap_or_default(), version.unwrap_or_default());
                return Err(format!("no kind {kind:?} is registered for version {version:?}"));
            }
        };
        // A star is all who are known, and not everybody.
        if policy.user == "*" || policy.group == "*" {
            (policy.user, policy.group) = (String::new(), AUTHENTICATED.into());
        }
        Ok(policy)
    }

    /// `subjectMatches`: a policy names a user, a group, or both, which must then both fit.
    fn is_about(&self, user: &UserInfo) -> bool {
        if self.user.is_empty() && self.group.is_empty() {
            return false;
        }
        let is_user = self.user.is_empty() || *user.name == *self.user;
        is_user && (self.group.is_empty() || user.is_member_of(&self.group))
    }

    fn allows(&self, info: &RequestInfo) -> bool {
        if self.readonly && !matches!(info.verb.as_str(), "get" | "list" | "watch") {
            return false;
        }
        let fits = |own: &str, asked: &str| own == "*" || own == asked;
        if info.is_resource_request {
            fits(&self.namespace, &info.namespace)
                && fits(&self.resource, &info.resource)
                && fits(&self.api_group, &info.group)
        } else {
            path_fits(&self.non_resource_path, &info.path)
        }
    }
}

/// A policy from before: an empty field was everything.
impl From<Unversioned> for AbacPolicy {
    fn from(old: Unversioned) -> AbacPolicy {
        let everything = |text: &String| if text.is_empty() { "*".to_owned() } else { text.clone() };
        let is_anybodys = old.user.is_empty() && old.group.is_empty();
        let is_of_all = old.resource.is_empty() && old.namespace.is_empty();
        AbacPolicy {
            group: if is_anybodys { AUTHENTICATED.into() } else { old.group },
            user: old.user,
            readonly: old.readonly,
            api_group: "*".into(),
            non_resource_path: if is_of_all { "*".into() } else { String::new() },
            resource: everything(&old.resource),
            namespace: everything(&old.namespace),
        }
    }
}

fn path_fits(policy: &str, path: &str) -> bool {
    match policy.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => policy == path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICIES: &str = r#"
# People.
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", "namespace": "projectCaribou", "resource": "pods", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "system:authenticated", "readonly": true, "nonResourcePath": "/version*"}}
{"user": "old", "resource": "events"}
{"readonly": true, "namespace": "open"}
"#;

    #[test]
    fn policies_are_matched_as_upstream() {
        let abac = Abac::parse(POLICIES).map_err(|(_, _, why)| why).unwrap();
        let cases = [
            ("alice", "DELETE /apis/apps/v1/namespaces/a/deployments/b", true),
            ("alice", "GET /metrics", false),
            ("alice", "GET /version", true),
            ("bob", "GET /api/v1/namespaces/projectCaribou/pods", true),
            ("bob", "POST /api/v1/namespaces/projectCaribou/pods", false),
            ("bob", "GET /api/v1/namespaces/other/pods", false),
            ("bob", "GET /apis/metrics.k8s.io/v1/namespaces/projectCaribou/pods", false),
            ("old", "DELETE /api/v1/namespaces/a/events/e", true),
            ("old", "GET /api/v1/namespaces/a/pods", false),
            ("carol", "GET /api/v1/namespaces/open/secrets", true),
            ("carol", "DELETE /api/v1/namespaces/open/secrets/s", false),
        ];
        for (user, line, allowed) in cases {
            let (method, path) = line.split_once(' ').unwrap();
            let info = RequestInfo::new(&method.parse().unwrap(), path, "").unwrap();
            let user = UserInfo::authenticated(user, &[]);
            let AuthorizerReply::Now(decision) = abac.authorize(&user, &info) else {
                panic!("it knows at once")
            };
            assert_eq!(decision.is_allowed(), allowed, "{} {line}", user.name);
        }
        assert_eq!(abac.rules_for(&UserInfo::authenticated("bob", &[]), "projectCaribou").rules.len(), 1);
    }

    #[test]
    fn a_line_that_is_no_policy_is_named() {
        let text = "{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}";
        let (number, _, why) = Abac::parse(text).map(|_| ()).unwrap_err();
        assert_eq!((number, why.as_str()), (0, "no kind \"Pod\" is registered for version \"v1\""));
    }
}
