//! Asks the authorizers whether the user may do this, or answers 403 (`filters.WithAuthorization`).

use std::sync::Arc;

use super::{Next, Passing, fail, info_of, refuse, user_of};
use crate::apimachinery::gvk::GroupResource;
use crate::apimachinery::status::{Status, StatusDetails};
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::{ApiRequest, ApiResponse};
use crate::apiserver::audit::AuditContext;
use crate::apiserver::authorizer::{Authorizer, Decision, Refused};
use crate::apiserver::request::RequestInfo;

/// Lets through what is allowed.
pub async fn authorize(
    authorizer: &Arc<dyn Authorizer>,
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    let (info, user) = (info_of(&request), user_of(&request));
    match authorizer.authorize(&user, &info).wait().await {
        Decision::Allow(allowed) => {
            annotate(&request, "allow", allowed.reason.as_deref().unwrap_or_default());
            request.extensions_mut().insert(allowed);
            next.run(request).await
        }
        Decision::Failed { error, .. } => {
            if let Some(audit) = request.extensions().get::<Arc<AuditContext>>() {
                audit.annotate("authorization.k8s.io/reason", "internal error");
            }
            fail(&request, &error)
        }
        Decision::Deny(reason) | Decision::NoOpinion(reason) => {
            annotate(&request, "forbid", &reason);
            let mut answer = refuse(&request, forbidden(&user, &info, &reason));
            answer.extensions_mut().insert(Refused { reason: reason.into() });
            answer
        }
    }
}

/// For the audit event.
fn annotate(request: &ApiRequest, decision: &str, reason: &str) {
    if let Some(audit) = request.extensions().get::<Arc<AuditContext>>() {
        audit.annotate("authorization.k8s.io/decision", decision);
        audit.annotate("authorization.k8s.io/reason", reason);
    }
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

fn cannot(user: &UserInfo, info: &RequestInfo) -> String {
    let RequestInfo { verb, path, resource, subresource, group, namespace, .. } = info;
    let name = &user.name;
    if !info.is_resource_request {
        return format!("User {name:?} cannot {verb} path {path:?}");
    }
    let resource = match subresource.as_str() {
        "" => resource.clone(),
        subresource => format!("{resource}/{subresource}"),
    };
    let scope = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    format!("User {name:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
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
        ];
        for (path, message) in cases {
            let info = RequestInfo::new(&http::Method::GET, path, "").unwrap();
            assert_eq!(forbidden(&user, &info, "").message, message);
        }
    }
}
