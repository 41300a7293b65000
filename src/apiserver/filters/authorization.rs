//! Asks the authorizers whether the user may do this, or answers 403 (`filters.WithAuthorization`).

use std::sync::Arc;

use http::header::{UPGRADE, X_CONTENT_TYPE_OPTIONS};

use super::passed::Passed;
use super::{NOSNIFF, Next, Passing, fail, refuse};
use crate::authorization::metrics::AuthorizationMetrics;
use crate::authorizer::{Authorizer, Decision, Refused, forbidden};
use crate::request::{RequestContext, RequestInfo};
use apimachinery::wire::ApiResponse;
use clock::Clock;

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
