//! Tells of requests as the audit policy wants it (`filters.WithAudit`).

use std::sync::Arc;

use super::{Next, Passing, fail};
use crate::audit::Audit;
use crate::audit::policy::AuditStage;
use crate::authentication::remarks;
use crate::request::until_sent;
use apimachinery::wire::ApiResponse;

/// Behind authentication, which says who asks; in front of everything else that may refuse.
pub async fn audit(audit: &Option<Arc<Audit>>, mut request: Passing, next: Next<'_>) -> ApiResponse {
    let Some(audit) = audit else { return next.run(request).await };
    let Some(mut telling) = audit.begin(&request, &request.ctx) else { return next.run(request).await };
    if let Some(known) = &request.story.authenticated {
        remarks::annotations(&known.remarks).for_each(|(key, value)| telling.context().annotate(key, value));
    }
    if !telling.received().await {
        audit.rejected();
        let response = fail(&mut request, "failed to store audit event");
        telling.tell(AuditStage::ResponseComplete, response.status().as_u16()).await;
        return response;
    }
    request.ctx.audit = Some(telling.context().clone());
    let is_long = request.ctx.info.is_long_running();
    let response = next.run(request).await;
    let code = response.status().as_u16();
    if !is_long {
        telling.tell(AuditStage::ResponseComplete, code).await;
        return response;
    }
    telling.started(code).await;
    // Its end, or that of its reader, is told.
    until_sent(response, telling)
}
