//! Tells of requests as the audit policy wants it (`filters.WithAudit`).

use std::sync::Arc;

use super::until_sent::until_sent;
use super::{Next, Passing, fail, info_of, user_of};
use crate::audit::Audit;
use crate::audit::policy::Stage;
use apimachinery::wire::ApiResponse;

/// Behind authentication, which says who asks; in front of everything else that may refuse.
pub async fn audit(mut request: Passing, next: Next<'_>) -> ApiResponse {
    let Some(audit) = request.extensions().get::<Arc<Audit>>().cloned() else {
        return next.run(request).await;
    };
    let (info, user) = (info_of(&request), user_of(&request));
    let Some(mut telling) = audit.begin(&request, &user, &info) else { return next.run(request).await };
    if !telling.received().await {
        audit.rejected();
        let response = fail(&mut request, "failed to store audit event");
        telling.tell(Stage::ResponseComplete, response.status().as_u16()).await;
        return response;
    }
    request.extensions_mut().insert(telling.context().clone());
    let response = next.run(request).await;
    let code = response.status().as_u16();
    if !info.is_long_running() {
        telling.tell(Stage::ResponseComplete, code).await;
        return response;
    }
    telling.started(code).await;
    // Its end, or that of its reader, is told.
    until_sent(response, telling)
}
