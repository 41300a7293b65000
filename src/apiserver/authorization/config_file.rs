//! `--authorization-config`: an AuthorizationConfiguration, the list of authorizers as a file, with several
//! webhooks, each with conditions of its own (`k8s.io/apiserver/pkg/apis/apiserver/validation`).

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::mode::Mode;
use apimachinery::duration;
use apimachinery::yaml;
use apis::admissionregistration::expressions::compile;
use cel::conditions::{ExpressionError, all_hold};
use cel::{Activation, Budget, Environment, Program, Type, Value as CelValue};

golang::text_error! {
    /// What is wrong with how requests shall be authorized, or with a file that says it; in upstream's words.
    pub struct BadAuthorizationConfig;
}

const API_VERSIONS: [&str; 3] =
    ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"];

/// One authorizer of the list.
pub(super) enum AuthorizerEntry {
    /// Without settings.
    Mode(Mode),
    /// A webhook.
    Webhook(Box<WebhookSettings>),
}

/// How one webhook is asked.
pub(super) struct WebhookSettings {
    /// A kubeconfig that says where it is.
    pub kube_config_file: PathBuf,
    /// Of the SubjectAccessReview that is sent.
    pub version: String,
    /// How long what it allows is remembered.
    pub authorized_ttl: Duration,
    /// How long what it refuses is remembered.
    pub unauthorized_ttl: Duration,
    /// For one call.
    pub timeout: Duration,
    /// Whether a webhook that cannot be asked is as good as one that denies.
    pub fails_closed: bool,
    /// It is only asked about what they all hold for.
    pub conditions: Conditions,
}

/// `matchConditions`, compiled.
#[derive(Default)]
pub(super) struct Conditions(Vec<(String, Program)>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuthorizationFile {
    api_version: String,
    kind: String,
    #[serde(default)]
    authorizers: Vec<WrittenAuthorizer>,
}

#[derive(Deserialize)]
struct WrittenAuthorizer {
    #[serde(rename = "type")]
    mode: String,
    #[serde(default)]
    name: String,
    webhook: Option<WrittenWebhook>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenWebhook {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: Option<String>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: Option<String>,
    #[serde(default, rename = "cacheAuthorizedRequests")]
    _cache_authorized: Option<bool>,
    #[serde(default, rename = "cacheUnauthorizedRequests")]
    _cache_unauthorized: Option<bool>,
    timeout: Option<String>,
    #[serde(default)]
    subject_access_review_version: String,
    #[serde(default)]
    match_condition_subject_access_review_version: String,
    #[serde(default)]
    failure_policy: String,
    connection_info: ConnectionInfo,
    #[serde(default)]
    match_conditions: Vec<MatchCondition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionInfo {
    #[serde(rename = "type")]
    of: String,
    #[serde(default)]
    kube_config_file: PathBuf,
}

#[derive(Deserialize)]
struct MatchCondition {
    expression: String,
}

/// Reads the file's text: each authorizer, with its name.
///
/// # Errors
/// What is wrong with it, and where.
pub(super) fn parse(text: &str) -> Result<Vec<(String, AuthorizerEntry)>, BadAuthorizationConfig> {
    let file: AuthorizationFile = yaml::from_str(text).map_err(|error| error.to_string())?;
    if file.kind != "AuthorizationConfiguration" || !API_VERSIONS.contains(&&*file.api_version) {
        return Err(
            format!("no kind {:?} is registered for version {:?}", file.kind, file.api_version).into()
        );
    }
    if file.authorizers.is_empty() {
        return Err("authorizers: Required value: at least one authorization mode must be defined".into());
    }
    let mut names: Vec<(&str, &str)> = Vec::new();
    for (at, authorizer) in file.authorizers.iter().enumerate() {
        let known = (authorizer.mode.as_str(), authorizer.name.as_str());
        let is_repeated =
            names.iter().any(|(mode, name)| *name == known.1 || (*mode == known.0 && *mode != "Webhook"));
        if authorizer.name.is_empty() {
            return Err(format!("authorizers[{at}].name: Required value").into());
        }
        if is_repeated {
            return Err(format!("authorizers[{at}].name: Duplicate value: {:?}", authorizer.name).into());
        }
        names.push(known);
    }
    let named =
        |(at, authorizer): (usize, &WrittenAuthorizer)| Ok((authorizer.name.clone(), entry(at, authorizer)?));
    file.authorizers.iter().enumerate().map(named).collect()
}

fn entry(at: usize, authorizer: &WrittenAuthorizer) -> Result<AuthorizerEntry, String> {
    let path = format!("authorizers[{at}]");
    let mode: Mode = authorizer
        .mode
        .parse()
        .map_err(|_| format!("{path}.type: Unsupported value: {:?}", authorizer.mode))?;
    match (mode, &authorizer.webhook) {
        (Mode::Webhook, Some(webhook)) => {
            Ok(AuthorizerEntry::Webhook(Box::new(settings(&format!("{path}.webhook"), webhook)?)))
        }
        (Mode::Webhook, None) => Err(format!("{path}.webhook: Required value: required when type=Webhook")),
        // The file of ABAC has no place here, as upstream.
        (Mode::Abac, _) => Err(format!("{path}.type: Unsupported value: \"ABAC\"")),
        (_, Some(_)) => Err(format!(
            "{path}.webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"
        )),
        (mode, None) => Ok(AuthorizerEntry::Mode(mode)),
    }
}

fn settings(path: &str, webhook: &WrittenWebhook) -> Result<WebhookSettings, String> {
    let duration = |name: &str, text: &Option<String>, default: u64| match text {
        None => Ok(Duration::from_secs(default)),
        Some(text) => duration::parse(text)
            .ok_or_else(|| format!("{path}.{name}: Invalid value: {text:?}: must be a duration")),
    };
    let version = webhook.subject_access_review_version.clone();
    if !matches!(version.as_str(), "v1" | "v1beta1") {
        return Err(format!(
            "{path}.subjectAccessReviewVersion: Unsupported value: {version:?}: supported values: \"v1\", \"v1beta1\""
        ));
    }
    let of_conditions = &webhook.match_condition_subject_access_review_version;
    if of_conditions != "v1" && (!webhook.match_conditions.is_empty() || !of_conditions.is_empty()) {
        return Err(format!(
            "{path}.matchConditionSubjectAccessReviewVersion: Unsupported value: {of_conditions:?}: supported values: \"v1\""
        ));
    }
    if webhook.connection_info.of != "KubeConfigFile" {
        let of = &webhook.connection_info.of;
        return Err(format!(
            "{path}.connectionInfo.type: Unsupported value: {of:?}: supported values: \"KubeConfigFile\""
        ));
    }
    let fails_closed = match webhook.failure_policy.as_str() {
        "Deny" => true,
        "NoOpinion" => false,
        other => {
            return Err(format!(
                "{path}.failurePolicy: Unsupported value: {other:?}: supported values: \"Deny\", \"NoOpinion\""
            ));
        }
    };
    Ok(WebhookSettings {
        kube_config_file: webhook.connection_info.kube_config_file.clone(),
        version,
        authorized_ttl: duration("authorizedTTL", &webhook.authorized_ttl, 300)?,
        unauthorized_ttl: duration("unauthorizedTTL", &webhook.unauthorized_ttl, 30)?,
        timeout: duration("timeout", &webhook.timeout, 30)?,
        fails_closed,
        conditions: Conditions::compile(path, &webhook.match_conditions)?,
    })
}

impl Conditions {
    fn compile(path: &str, conditions: &[MatchCondition]) -> Result<Conditions, String> {
        let environment = Environment::new().with_variable("request", request_type());
        let mut programs = Vec::new();
        for (at, MatchCondition { expression }) in conditions.iter().enumerate() {
            let path = format!("{path}.matchConditions[{at}].expression");
            let program = compile(&environment, expression, &[Type::Bool])
                .map_err(|why| format!("{path}: Invalid value: {expression:?}: {why}"))?;
            programs.push((expression.clone(), program));
        }
        Ok(Conditions(programs))
    }

    /// Whether the webhook is to be asked: all hold.
    ///
    /// # Errors
    /// What went wrong with those that could not be evaluated.
    pub(super) fn hold_for(&self, spec: &Value) -> Result<bool, ExpressionError> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let activation = Activation::new().with("request", CelValue::from_json(&seen(spec)));
        all_hold(self.0.iter().map(|(expression, program)| {
            let failed =
                |error| format!("cel evaluation error: expression '{expression}' resulted in error: {error}");
            let value = program.evaluate(&activation, &mut Budget::new(Budget::PER_CALL)).map_err(failed)?;
            Ok(matches!(value, CelValue::Bool(true)))
        }))
    }
}

/// `buildRequestType`: a SubjectAccessReviewSpec.
fn request_type() -> Type {
    let texts = |names: &[&'static str]| -> Vec<(&'static str, Type)> {
        names.iter().map(|name| (*name, Type::String)).collect()
    };
    let strings = || Type::list(Type::String);
    let requirement = || {
        let fields = texts(&["key", "operator"]).into_iter().chain([("values", strings())]);
        Type::object("kubernetes.SelectorRequirement", fields)
    };
    let selector = |name: &str| {
        Type::object(name, [("rawSelector", Type::String), ("requirements", Type::list(requirement()))])
    };
    let resource = texts(&["namespace", "verb", "group", "version", "resource", "subresource", "name"])
        .into_iter()
        .chain([
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ]);
    let fields = [
        ("resourceAttributes", Type::object("kubernetes.ResourceAttributes", resource)),
        ("nonResourceAttributes", Type::object("kubernetes.NonResourceAttributes", texts(&["path", "verb"]))),
        ("user", Type::String),
        ("groups", strings()),
        ("extra", Type::map_of(strings())),
        ("uid", Type::String),
    ];
    Type::object("kubernetes.SubjectAccessReviewSpec", fields)
}

/// What conditions see: the spec with every field of what is asked for.
fn seen(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if spec["resourceAttributes"].is_object() {
        for field in ["namespace", "verb", "group", "version", "resource", "subresource", "name"] {
            let value = &mut spec["resourceAttributes"][field];
            if value.is_null() {
                *value = json!("");
            }
        }
    }
    for (field, empty) in
        [("user", json!("")), ("groups", json!([])), ("uid", json!("")), ("extra", json!({}))]
    {
        if spec[field].is_null() {
            spec[field] = empty;
        }
    }
    for field in ["resourceAttributes", "nonResourceAttributes"] {
        if let (true, Some(members)) = (spec[field].is_null(), spec.as_object_mut()) {
            members.remove(field);
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: team
  webhook:
    timeout: 3s
    unauthorizedTTL: 10s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /nowhere}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: request.resourceAttributes.namespace == 'team'
- {type: Node, name: node}
- {type: RBAC, name: rbac}
";

    #[test]
    fn the_file_names_authorizers_and_conditions() {
        let entries = parse(FILE).unwrap();
        let [
            (team, AuthorizerEntry::Webhook(webhook)),
            (_, AuthorizerEntry::Mode(Mode::Node)),
            (_, AuthorizerEntry::Mode(Mode::Rbac)),
        ] = &*entries
        else {
            panic!("three authorizers");
        };
        assert!(webhook.fails_closed && team == "team");
        assert_eq!((webhook.timeout.as_secs(), webhook.unauthorized_ttl.as_secs()), (3, 10));
        let holds = |spec: Value| webhook.conditions.hold_for(&spec).ok();
        let attributes = |namespace: &str| json!({"resourceAttributes": {"namespace": namespace}});
        assert_eq!(holds(attributes("team")), Some(true));
        assert_eq!(holds(attributes("other")), Some(false));
        assert_eq!(holds(json!({"resourceAttributes": {"verb": "list"}})), Some(false));
        assert_eq!(holds(json!({"nonResourceAttributes": {"path": "/"}})), Some(false));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |from: &str, to: &str| parse(&FILE.replace(from, to)).map(|_| ()).unwrap_err();
        assert!(refused("name: node", "name: team").contains("authorizers[1].name: Duplicate value"));
        assert!(refused("type: RBAC", "type: ABAC").contains("authorizers[2].type: Unsupported value"));
        assert!(
            refused("failurePolicy: Deny", "failurePolicy: Maybe").contains("failurePolicy: Unsupported")
        );
        assert!(refused("has(request.resourceAttributes)", "\"'text'\"").contains("must evaluate to bool"));
        assert!(refused("kind: Auth", "kind: X").contains("is registered for version"));
    }
}
