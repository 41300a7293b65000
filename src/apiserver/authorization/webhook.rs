//! The Webhook authorizer (`k8s.io/apiserver/plugin/pkg/authorizer/webhook`): somebody outside is sent a
//! SubjectAccessReview, and what they say is remembered for a while.

use std::sync::Arc;

use serde_json::{Value, json};

use super::config_file::{BadAuthorizationConfig, WebhookSettings};
use crate::authorizer::{Allowed, Authorizer, AuthorizerReply, Decision, UserRules};
use crate::request::RequestInfo;
use crate::webhook::{Answers, ClientConfig, FIRST_PAUSE, ServiceResolver, WebhookClient};
use apimachinery::fields::FieldSelector;
use apimachinery::labels::{Operator, Selector};
use apimachinery::user::UserInfo;
use apis::tree::{flag, text};
use clock::Clock;

/// As in `--authorization-mode`.
const MODE: &str = "Webhook";
/// So many answers are remembered.
const MAX_REMEMBERED: usize = 8192;
/// Longer questions are not remembered.
const MAX_KEY_BYTES: usize = 10_000;

/// Asks somebody else.
pub(super) struct Webhook {
    client: WebhookClient,
    settings: WebhookSettings,
    remembered: Answers<String, Decision>,
}

impl Webhook {
    /// Whom the kubeconfig names.
    ///
    /// # Errors
    /// A file that cannot be read; a version that does not exist.
    pub(super) fn new(
        settings: WebhookSettings,
        resolver: &ServiceResolver,
        clock: &Clock,
    ) -> Result<Webhook, BadAuthorizationConfig> {
        let client = ClientConfig::from_kubeconfig(&settings.kube_config_file).map_err(|why| why.0)?;
        let version = &settings.version;
        if !matches!(version.as_str(), "v1" | "v1beta1") {
            let known = "should be v1beta1 or v1";
            return Err(format!("unsupported webhook authorizer version {version:?}, {known}").into());
        }
        let client = WebhookClient::new(client, resolver, clock);
        Ok(Webhook { client, settings, remembered: Answers::new(clock, MAX_REMEMBERED) })
    }

    fn remember(&self, key: String, decision: &Decision) {
        let ttl =
            if decision.is_allowed() { self.settings.authorized_ttl } else { self.settings.unauthorized_ttl };
        if key.len() <= MAX_KEY_BYTES {
            self.remembered.put(key, decision.clone(), ttl);
        }
    }

    async fn ask(&self, key: String, spec: Value) -> Decision {
        let review = json!({
            "apiVersion": format!("authorization.k8s.io/{}", self.settings.version),
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": spec,
        });
        match self.client.call_until_it_passes(&review, self.settings.timeout, FIRST_PAUSE).await {
            Ok(answer) => {
                let decision = decision_of(&answer["status"]);
                self.remember(key, &decision);
                decision
            }
            Err(error) => {
                tracing::warn!(%error, "Failed to make webhook authorizer request");
                Decision::failed(error.to_string(), self.settings.fails_closed)
            }
        }
    }
}

impl Authorizer for Webhook {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        let spec = spec_of(user, info, &self.settings.version);
        match self.settings.conditions.hold_for(&spec) {
            Ok(true) => {}
            Ok(false) => return AuthorizerReply::Now(Decision::SILENT),
            Err(_) if !self.settings.fails_closed => return AuthorizerReply::Now(Decision::SILENT),
            Err(error) => return AuthorizerReply::Now(Decision::failed(error, true)),
        }
        let key = spec.to_string();
        match self.remembered.get(&key) {
            Some(decision) => AuthorizerReply::Now(decision),
            None => AuthorizerReply::Later(Box::pin(self.ask(key, spec))),
        }
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        let why = "webhook authorizer does not support user rule resolution".to_owned();
        UserRules { incomplete: true, errors: vec![why], ..UserRules::default() }
    }
}

fn decision_of(status: &Value) -> Decision {
    let reason = text(status, "reason");
    match (flag(status, "allowed"), flag(status, "denied")) {
        (true, true) => Decision::Failed {
            error: "webhook subject access review returned both allow and deny response".into(),
            reason: reason.to_owned(),
            is_final: true,
        },
        (false, true) => Decision::Deny(reason.to_owned()),
        (true, false) => {
            let reason: Option<Arc<str>> = (!reason.is_empty()).then(|| reason.into());
            Decision::Allow(Allowed { by: MODE, reason, before: None })
        }
        (false, false) => Decision::NoOpinion(reason.to_owned()),
    }
}

fn spec_of(user: &UserInfo, info: &RequestInfo, version: &str) -> Value {
    // The name of this one field changed with the version.
    let groups = if version == "v1" { "groups" } else { "group" };
    let mut spec = json!({"user": &*user.name});
    if !user.groups.is_empty() {
        spec[groups] = user.groups.iter().map(|group| Value::from(&**group)).collect();
    }
    if !user.uid.is_empty() {
        spec["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        spec["extra"] = json!(user.extra);
    }
    if !info.is_resource_request {
        spec["nonResourceAttributes"] = json!({"path": info.path, "verb": info.verb});
        return spec;
    }
    let fields = [
        ("namespace", &info.namespace),
        ("verb", &info.verb),
        ("group", &info.group),
        ("version", &info.version),
        ("resource", &info.resource),
        ("subresource", &info.subresource),
        ("name", &info.name),
    ];
    let mut attributes = json!({});
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        attributes[name] = value.as_str().into();
    }
    if let requirements @ [_, ..] = &*field_requirements(&info.field_selector) {
        attributes["fieldSelector"] = json!({"requirements": requirements});
    }
    if let requirements @ [_, ..] = &*label_requirements(&info.label_selector) {
        attributes["labelSelector"] = json!({"requirements": requirements});
    }
    spec["resourceAttributes"] = attributes;
    spec
}

fn field_requirements(selector: &str) -> Vec<Value> {
    let requirement = |requirement: &apimachinery::fields::FieldRequirement| {
        let operator = if requirement.equal { "In" } else { "NotIn" };
        json!({"key": requirement.field, "operator": operator, "values": [requirement.value]})
    };
    let selector = FieldSelector::parse(selector).unwrap_or_default();
    selector.requirements.iter().map(requirement).collect()
}

fn label_requirements(selector: &str) -> Vec<Value> {
    let selector = Selector::parse(selector).unwrap_or_default();
    let mut requirements = Vec::new();
    for requirement in &selector.requirements {
        let (operator, has_values) = match requirement.operator {
            Operator::Equals | Operator::In => ("In", true),
            Operator::NotEquals | Operator::NotIn => ("NotIn", true),
            Operator::Exists => ("Exists", false),
            Operator::DoesNotExist => ("DoesNotExist", false),
            Operator::GreaterThan | Operator::LessThan => continue,
        };
        let mut tree = json!({"key": requirement.key, "operator": operator});
        if has_values {
            tree["values"] = json!(requirement.values);
        }
        requirements.push(tree);
    }
    requirements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_who_and_what() {
        let user = UserInfo::authenticated("jane", &["dev"]);
        let path = "/api/v1/namespaces/a/pods";
        let info = RequestInfo::new(&http::Method::GET, path, "fieldSelector=spec.nodeName%3Dn").unwrap();
        let spec = spec_of(&user, &info, "v1");
        assert_eq!(
            spec,
            json!({"user": "jane", "groups": ["dev", "system:authenticated"], "resourceAttributes": {
                "namespace": "a", "verb": "list", "version": "v1", "resource": "pods",
                "fieldSelector": {"requirements": [
                    {"key": "spec.nodeName", "operator": "In", "values": ["n"]}]}}})
        );
        assert!(spec_of(&user, &info, "v1beta1")["group"].is_array());
        let info = RequestInfo::new(&http::Method::GET, "/metrics", "").unwrap();
        let wanted = json!({"path": "/metrics", "verb": "get"});
        assert_eq!(spec_of(&user, &info, "v1")["nonResourceAttributes"], wanted);
    }

    #[test]
    fn who_denies_and_allows_denies() {
        assert!(decision_of(&json!({"allowed": true})).is_allowed());
        let denied = decision_of(&json!({"allowed": true, "denied": true, "reason": "no"}));
        assert_eq!((denied.is_allowed(), denied.reason(), denied.error().is_some()), (false, "no", true));
        assert_eq!(decision_of(&json!({"denied": true})), Decision::Deny(String::new()));
        assert_eq!(decision_of(&json!({})), Decision::SILENT);
    }
}
