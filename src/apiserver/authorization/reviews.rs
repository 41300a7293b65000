//! Access reviews: what the authorizers say when somebody asks them in an object
//! (`pkg/registry/authorization`).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::authorizer::{Authorizer, Decision, UserRules};
use crate::registry::rest::Review;
use crate::request::{RequestContext, RequestInfo};
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::object::nullable;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::authorization::{validate_attributes, validate_subject};
use apis::rbac::policy_rule::PolicyRule;

const GROUP: &str = "authorization.k8s.io";

/// All of them, answered by `authorizer`.
pub fn all(authorizer: &Arc<dyn Authorizer>) -> Vec<Box<dyn Review>> {
    let access = |whose| AccessReview { whose, authorizer: authorizer.clone() };
    vec![
        Box::new(access(Whose::Subject)),
        Box::new(access(Whose::LocalSubject)),
        Box::new(access(Whose::Own)),
        Box::new(RulesReview { authorizer: authorizer.clone() }),
    ]
}

/// Whose access is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// SubjectAccessReview
    Subject,
    /// LocalSubjectAccessReview
    LocalSubject,
    /// SelfSubjectAccessReview
    Own,
}

struct AccessReview {
    whose: Whose,
    authorizer: Arc<dyn Authorizer>,
}

/// SelfSubjectRulesReview
struct RulesReview {
    authorizer: Arc<dyn Authorizer>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReviewSpec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    #[serde(deserialize_with = "nullable")]
    groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    extra: BTreeMap<String, Vec<String>>,
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAttributes {
    namespace: String,
    verb: String,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    name: String,
    field_selector: Option<SelectorAttributes>,
    label_selector: Option<SelectorAttributes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NonResourceAttributes {
    path: String,
    verb: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SelectorAttributes {
    raw_selector: String,
    #[serde(deserialize_with = "nullable")]
    requirements: Vec<SelectorRequirement>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SelectorRequirement {
    key: String,
    operator: String,
    #[serde(deserialize_with = "nullable")]
    values: Vec<String>,
}

impl AccessReview {
    fn check(&self, namespace: &str, question: &Value) -> Result<(), Status> {
        let mut errors = FieldErrors::default();
        validate_attributes(question, self.whose == Whose::LocalSubject, &mut errors);
        if self.whose != Whose::Own {
            validate_subject(question, &mut errors);
        }
        if !errors.is_empty() {
            // Upstream has lost the kind's name when it comes to this.
            return Err(Status::invalid(&GroupVersion::new(GROUP, "v1").kind(""), "", &errors));
        }
        let own = question["metadata"]["namespace"].as_str().unwrap_or_default();
        if self.whose == Whose::LocalSubject && own != namespace {
            let why = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
            return Err(Status::bad_request(why));
        }
        Ok(())
    }

    fn user(&self, ctx: &RequestContext, spec: &ReviewSpec) -> Arc<UserInfo> {
        if self.whose == Whose::Own {
            return ctx.user.clone();
        }
        let groups = spec.groups.iter().map(|group| group.as_str().into()).collect();
        let (uid, extra) = (spec.uid.clone(), spec.extra.clone());
        Arc::new(UserInfo { name: spec.user.as_str().into(), uid, groups, extra })
    }
}

impl Review for AccessReview {
    fn resource(&self) -> (&'static str, &'static str) {
        let plural = match self.whose {
            Whose::Subject => "subjectaccessreviews",
            Whose::LocalSubject => "localsubjectaccessreviews",
            Whose::Own => "selfsubjectaccessreviews",
        };
        (GROUP, plural)
    }

    fn review<'a>(
        &'a self,
        ctx: &'a RequestContext,
        namespace: &'a str,
        mut question: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            self.check(namespace, &question)?;
            let spec = ReviewSpec::deserialize(&question["spec"])
                .map_err(|error| Status::bad_request(error.to_string()))?;
            let user = self.user(ctx, &spec);
            let info = attributes(&spec);
            let decision = self.authorizer.authorize(&user, &info).wait().await;
            let mut status = json!({"allowed": decision.is_allowed()});
            if matches!(decision, Decision::Deny(_) | Decision::Failed { is_final: true, .. }) {
                status["denied"] = true.into();
            }
            if let Some(error) = decision.error() {
                status["evaluationError"] = error.into();
            }
            if !decision.reason().is_empty() {
                status["reason"] = decision.reason().into();
            }
            question["status"] = status;
            Ok(question)
        })
    }
}

impl Review for RulesReview {
    fn resource(&self) -> (&'static str, &'static str) {
        (GROUP, "selfsubjectrulesreviews")
    }

    fn review<'a>(
        &'a self,
        ctx: &'a RequestContext,
        _namespace: &'a str,
        mut question: Value,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        let namespace = question["spec"]["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            let refused = Status::bad_request("no namespace on request");
            return Box::pin(std::future::ready(Err(refused)));
        }
        let UserRules { rules, incomplete, errors } = self.authorizer.rules_for(&ctx.user, namespace);
        let (paths, resources): (Vec<PolicyRule>, Vec<PolicyRule>) =
            rules.into_iter().partition(|rule| !rule.non_resource_urls.is_empty());
        question["status"] =
            json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": incomplete});
        if let [first, rest @ ..] = &*errors {
            let all = if rest.is_empty() { first.clone() } else { format!("[{}]", errors.join(", ")) };
            question["status"]["evaluationError"] = all.into();
        }
        Box::pin(std::future::ready(Ok(question)))
    }
}

/// `util.AuthorizationAttributesFrom`
fn attributes(spec: &ReviewSpec) -> RequestInfo {
    if let Some(NonResourceAttributes { path, verb }) = &spec.non_resource_attributes {
        return RequestInfo { path: path.clone(), verb: verb.clone(), ..RequestInfo::default() };
    }
    let attributes = spec.resource_attributes.as_ref();
    let text = |of: fn(&ResourceAttributes) -> &String| attributes.map(of).cloned().unwrap_or_default();
    let field_selector = attributes.and_then(|it| it.field_selector.as_ref()).map(raw_field_selector);
    let label_selector = attributes.and_then(|it| it.label_selector.as_ref()).map(raw_label_selector);
    let version = text(|it| &it.version);
    RequestInfo {
        is_resource_request: true,
        verb: text(|it| &it.verb),
        group: text(|it| &it.group),
        version: if version.is_empty() { "*".into() } else { version },
        namespace: text(|it| &it.namespace),
        resource: text(|it| &it.resource),
        subresource: text(|it| &it.subresource),
        name: text(|it| &it.name),
        field_selector: field_selector.unwrap_or_default(),
        label_selector: label_selector.unwrap_or_default(),
        ..RequestInfo::default()
    }
}

/// Fields are compared with one value each; a requirement that says more only widens what is asked for, and
/// is left out as upstream does.
fn raw_field_selector(selector: &SelectorAttributes) -> String {
    let term = |requirement: &SelectorRequirement| match (&*requirement.operator, &*requirement.values) {
        ("In", [value]) => Some(format!("{}={value}", requirement.key)),
        ("NotIn", [value]) => Some(format!("{}!={value}", requirement.key)),
        _ => None,
    };
    let terms: Vec<String> = selector.requirements.iter().filter_map(term).collect();
    if terms.is_empty() { selector.raw_selector.clone() } else { terms.join(",") }
}

fn raw_label_selector(selector: &SelectorAttributes) -> String {
    let term = |requirement: &SelectorRequirement| {
        let (key, values) = (&requirement.key, requirement.values.join(","));
        match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    };
    let terms: Vec<String> = selector.requirements.iter().map(term).collect();
    if terms.is_empty() { selector.raw_selector.clone() } else { terms.join(",") }
}
