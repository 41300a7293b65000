//! Asks the authorizers whether the user may do this, or answers 403 (`filters.WithAuthorization`).

use std::sync::Arc;

use http::header::{UPGRADE, X_CONTENT_TYPE_OPTIONS};

use super::passed::Passed;
use super::{NOSNIFF, Next, Passing, fail, refuse};
use crate::authorization::metrics::AuthorizationMetrics;
use crate::authorizer::{Authorizer, Decision, Refused};
use crate::request::{RequestContext, RequestInfo};
use apimachinery::gvk::GroupResource;
use apimachinery::status::{Status, StatusDetails};
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiResponse;
use clock::Clock;
use golang::go_text::quote;

/// Whom to ask, and where it is counted.
#[derive(Clone)]
pub struct Authorization {
    /// All authorizers.
    pub authorizer: Arc<dyn Authorizer>,
    /// What durations are measured with.
    pub clock: Clock,
    /// What is counted of decisions.
    pub metrics: Arc<AuthorizationMetrics>,
}

/// Lets through what is allowed.
pub async fn authorize(
    Authorization { authorizer, clock, metrics }: &Authorization,
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    let info = request.ctx.info.clone();
    let user = request.ctx.user.clone();
    let start = clock.elapsed();
    let decision = authorizer.authorize(&user, &info).wait().await;
    metrics.attempted(&decision, clock.elapsed().saturating_sub(start));
    let upgrades = request.headers().contains_key(UPGRADE);
    match decision {
        Decision::Allow(_) if !may_open_stream(authorizer, &request.ctx, upgrades).await => {
            let create = RequestInfo { verb: "create".into(), ..RequestInfo::clone(&info) };
            annotate(&request, "forbid", "");
            refuse(&mut request, forbidden(&user, &create, ""))
        }
        Decision::Allow(allowed) => {
            annotate(&request, "allow", allowed.reason.as_deref().unwrap_or_default());
            request.story.allowed = Some(allowed);
            next.run(request).await
        }
        Decision::Failed { error, .. } => {
            request.ctx.annotate("authorization.k8s.io/reason", "internal error");
            fail(&mut request, &error)
        }
        Decision::Deny(reason) | Decision::NoOpinion(reason) => {
            annotate(&request, "forbid", &reason);
            let mut answer = refuse(&mut request, forbidden(&user, &info, &reason));
            answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            let said = authorizer.explain(&user, &info).into();
            answer.extensions_mut().insert(Refused { reason: reason.into(), said });
            answer
        }
    }
}

/// Whoever opens a stream into a pod by a websocket, which begins as a GET, must be allowed to create one
/// (`AuthorizePodWebsocketUpgradeCreatePermission`).
async fn may_open_stream(authorizer: &Arc<dyn Authorizer>, ctx: &RequestContext, upgrades: bool) -> bool {
    let info = &ctx.info;
    let is_stream = matches!(info.subresource.as_str(), "exec" | "attach" | "portforward");
    if !is_stream || info.verb != "get" || !upgrades {
        return true;
    }
    let create = RequestInfo { verb: "create".into(), ..RequestInfo::clone(info) };
    ctx.second_checks.note(&create);
    matches!(authorizer.authorize(&ctx.user, &create).wait().await, Decision::Allow(_))
}

/// For the audit event.
fn annotate(request: &Passed, decision: &str, reason: &str) {
    request.ctx.annotate("authorization.k8s.io/decision", decision);
    request.ctx.annotate("authorization.k8s.io/reason", reason);
}

/// Upstream's `responsewriters.ForbiddenStatusError`.
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
