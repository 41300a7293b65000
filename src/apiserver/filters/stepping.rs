//! Holds requests while somebody steps the cluster (`kubarium step`). Upstream has nothing like it; the
//! nearest is a debugger that has stopped the process.
//!
//! It stands in front of the limits, so that who is held takes nobody's place. Reads are not held, for they
//! are no steps; nor are health checks, what is mounted beside the API, and what only asks who somebody is or
//! what they may.

use super::flow_asked::is_told;
use super::interceptor::is_own;
use super::{Next, Passing};
use crate::request::RequestInfo;
use apimachinery::wire::ApiResponse;
use flow::{Flow, HeldStage, HeldStep, StepId};

/// Where it is looked up why a client waited in vain.
#[derive(Clone)]
pub struct Holds(pub Flow);

impl Holds {
    /// Of a request that gave up, by a step of it: where it was held, if it was.
    pub(super) fn held_up(&self, step: Option<u64>) -> Option<String> {
        let step = self.0.held_up(StepId(step?))?;
        Some(format!(
            "somebody steps this cluster, and held it in {step}. `kubarium step` lets one step happen, \
             `kubarium step continue` all"
        ))
    }
}

/// Waits in front of a request that would change something.
pub async fn hold_request(flow: &Flow, request: Passing, next: Next<'_>) -> ApiResponse {
    if !flow.is_stepped() || !is_held(&request.ctx.info) {
        return next.run(request).await;
    }
    let cause = request.ctx.cause.map(StepId);
    let through = is_own(&request.ctx.user).then(|| flow.let_through(cause)).flatten();
    if through.is_none() {
        let info = request.ctx.info.clone();
        let step = || {
            let (verb, path) = (flow.name(&info.verb), info.path.as_str().into());
            HeldStep::in_apiserver(HeldStage::Request, verb, path).caused_by(cause)
        };
        flow.gate(step).await;
    }
    next.run(request).await
}

fn is_held(info: &RequestInfo) -> bool {
    let only_asks = matches!(info.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io");
    is_told(info) && !info.is_beside() && !info.is_long_running() && !only_asks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_held_and_nothing_else() {
        let info = |verb: &str, group: &str, resource: &str, subresource: &str| RequestInfo {
            is_resource_request: true,
            verb: verb.into(),
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            ..RequestInfo::default()
        };
        assert!(is_held(&info("create", "apps", "deployments", "")));
        assert!(is_held(&info("patch", "", "pods", "status")));
        assert!(!is_held(&info("list", "", "pods", "")));
        assert!(!is_held(&info("create", "", "pods", "exec")));
        assert!(!is_held(&info("update", "coordination.k8s.io", "leases", "")));
        assert!(!is_held(&info("create", "authorization.k8s.io", "subjectaccessreviews", "")));
        for path in ["/healthz", "/readyz", "/metrics", "/kubarium/v1/step/next"] {
            let info = RequestInfo { verb: "post".into(), path: path.into(), ..RequestInfo::default() };
            assert!(!is_held(&info), "{path}");
        }
    }
}
