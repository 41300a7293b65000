//! What an authorizer is, for those who ask one (`k8s.io/apiserver/pkg/authorization/authorizer`): interfaces
//! and no rule.
//!
//! In come a user and what is asked for, out goes a [`Decision`]. Filters, admission plugins and reviews hold
//! an `Arc<dyn Authorizer>`; who decides, and how, is in `authorization`.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::request::RequestInfo;
use apimachinery::gvk::GroupResource;
use apimachinery::status::{Status, StatusDetails};
use apimachinery::user::UserInfo;
use apimachinery::wire::MayRead;
use apis::rbac::policy_rule::PolicyRule;
use golang::go_text::quote;

/// What an authorizer says (`authorizer.Decision`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allow(Allowed),
    /// No, whatever others say; with the reason.
    Deny(String),
    /// Let others say; with a word on why, where there is one.
    NoOpinion(String),
    /// It could not be found out: a request that nobody else allows fails, and is not refused.
    Failed {
        /// What went wrong; for the client.
        error: String,
        /// What others had to say, a line each; may be empty.
        reason: String,
        /// Whether nobody else is to be asked: failing is as good as a no.
        is_final: bool,
    },
}

/// Who allowed it and why. In a request's extensions: for those who tell the story of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// As in `--authorization-mode`: `RBAC`.
    pub by: &'static str,
    /// As `RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "b" to User "c"`; nothing where that is all
    /// there is to say.
    pub reason: Option<Arc<str>>,
    /// Those that were asked before and had no opinion, as `Node, ABAC`; nothing when there were none.
    pub before: Option<Arc<str>>,
}

/// A request that the authorizers refused. In the extensions of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What they said, a line each; may be empty.
    pub reason: Arc<str>,
    /// Who was asked, and what each said; for those who tell the story of the request.
    pub said: Arc<[(&'static str, String)]>,
}

/// A decision, now or later: only what asks somebody else has to wait.
pub enum AuthorizerReply<'a> {
    /// It is known.
    Now(Decision),
    /// It has to be found out.
    Later(BoxFuture<'a, Decision>),
}

/// One source of permissions (`authorizer.Authorizer`). Called for every request.
pub trait Authorizer: Send + Sync {
    /// Whether `user` may do what `info` says.
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a>;

    /// What `user` may do in `namespace` as far as it can be listed (`authorizer.RuleResolver`).
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules;

    /// Why it does not allow it: what each authorizer behind it says. Asked about what was refused, and no
    /// more than that; who asks somebody else is not asked again.
    fn explain(&self, _user: &UserInfo, _info: &RequestInfo) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// What this user may read.
pub fn may_read(authorizer: &Arc<dyn Authorizer>, user: &Arc<UserInfo>) -> MayRead {
    let (authorizer, user) = (authorizer.clone(), user.clone());
    MayRead(Arc::new(move |group, resource, namespace| {
        let question = RequestInfo {
            is_resource_request: true,
            verb: "get".into(),
            group: group.into(),
            version: "*".into(),
            resource: resource.into(),
            namespace: namespace.into(),
            ..RequestInfo::default()
        };
        let (authorizer, user) = (authorizer.clone(), user.clone());
        Box::pin(async move {
            let decided = authorizer.authorize(&user, &question).wait().await;
            matches!(decided, Decision::Allow(_))
        })
    }))
}

/// What a user may do, as far as it can be listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserRules {
    /// Resources and paths that are no resources.
    pub rules: Vec<PolicyRule>,
    /// Whether there may be more.
    pub incomplete: bool,
    /// Why it is incomplete.
    pub errors: Vec<String>,
}

impl AuthorizerReply<'_> {
    /// Waits for it.
    pub async fn wait(self) -> Decision {
        match self {
            AuthorizerReply::Now(decision) => decision,
            AuthorizerReply::Later(decision) => decision.await,
        }
    }
}

impl Decision {
    /// Nothing to say.
    pub const SILENT: Decision = Decision::NoOpinion(String::new());

    /// A yes that needs no words.
    pub fn allowed_by(by: &'static str) -> Decision {
        Decision::Allow(Allowed { by, reason: None, before: None })
    }

    /// A yes that others had not said before; any other decision as it is.
    pub fn asked_after(self, before: &Option<Arc<str>>) -> Decision {
        match self {
            Decision::Allow(allowed) => Decision::Allow(Allowed { before: before.clone(), ..allowed }),
            other => other,
        }
    }

    /// It could not be found out.
    pub fn failed(error: impl Into<String>, is_final: bool) -> Decision {
        Decision::Failed { error: error.into(), reason: String::new(), is_final }
    }

    /// What went wrong, if something did.
    pub fn error(&self) -> Option<&str> {
        match self {
            Decision::Failed { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Whether it is a yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allow(_))
    }

    /// The words beside it; may be empty.
    pub fn reason(&self) -> &str {
        match self {
            Decision::Allow(allowed) => allowed.reason.as_deref().unwrap_or_default(),
            Decision::Deny(reason) | Decision::NoOpinion(reason) | Decision::Failed { reason, .. } => reason,
        }
    }
}

impl<A: Authorizer + ?Sized> Authorizer for Arc<A> {
    fn authorize<'a>(&'a self, user: &'a UserInfo, info: &'a RequestInfo) -> AuthorizerReply<'a> {
        (**self).authorize(user, info)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules {
        (**self).rules_for(user, namespace)
    }

    fn explain(&self, user: &UserInfo, info: &RequestInfo) -> Vec<(&'static str, String)> {
        (**self).explain(user, info)
    }
}

/// 403, as it is said to who asked (`responsewriters.ForbiddenStatusError`).
pub fn forbidden(user: &UserInfo, info: &RequestInfo, reason: &str) -> Status {
    let why = match reason {
        "" => cannot(user, info),
        reason => format!("{}: {reason}", cannot(user, info)),
    };
    if !info.is_resource_request {
        let details = StatusDetails::default();
        return Status::failure(403, "Forbidden", format!("forbidden: {why}")).with_details(details);
    }
    Status::forbidden(&GroupResource::new(&info.group, &info.resource), &info.name, &why)
}

/// What of it was asked by the client is made harmless for browsers.
fn cannot(user: &UserInfo, info: &RequestInfo) -> String {
    let text = plain(user, info);
    if text.contains(['&', '<', '>']) {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    } else {
        text
    }
}

fn plain(user: &UserInfo, info: &RequestInfo) -> String {
    let RequestInfo { verb, path, resource, subresource, group, namespace, .. } = info;
    let name = quote(&user.name);
    if !info.is_resource_request {
        return format!("User {name} cannot {verb} path {}", quote(path));
    }
    let resource = match subresource.as_str() {
        "" => resource.clone(),
        subresource => format!("{resource}/{subresource}"),
    };
    let scope = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", quote(namespace)),
    };
    let (resource, group) = (quote(&resource), quote(group));
    format!("User {name} cannot {verb} resource {resource} in API group {group} {scope}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_upstreams() {
        let user = UserInfo::authenticated("x", &[]);
        let cases = [
            (
                "/api/v1/namespaces/default/pods",
                "pods is forbidden: User \"x\" cannot list resource \"pods\" in API \
                group \"\" in the namespace \"default\"",
            ),
            (
                "/api/v1/nodes/a",
                "nodes \"a\" is forbidden: User \"x\" cannot get resource \"nodes\" in API group \
                \"\" at the cluster scope",
            ),
            (
                "/apis/apps/v1/namespaces/d/deployments/w/scale",
                "deployments.apps \"w\" is forbidden: User \"x\" \
                cannot get resource \"deployments/scale\" in API group \"apps\" in the namespace \"d\"",
            ),
            ("/metrics", "forbidden: User \"x\" cannot get path \"/metrics\""),
            ("/%3Cb%3E&%22x", "forbidden: User \"x\" cannot get path \"/&lt;b&gt;&amp;\\\"x\""),
        ];
        for (path, message) in cases {
            let info = RequestInfo::new(&http::Method::GET, path, "").unwrap();
            assert_eq!(forbidden(&user, &info, "").message, message);
        }
    }
}
