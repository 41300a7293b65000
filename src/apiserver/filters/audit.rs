//! Tells of requests as the audit policy wants it (`filters.WithAudit`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;

use super::{Next, Passing, fail, info_of, user_of};
use crate::apimachinery::wire::ApiResponse;
use crate::apiserver::audit::policy::Stage;
use crate::apiserver::audit::{Audit, Telling};

/// Behind authentication, which says who asks; in front of everything else that may refuse.
pub async fn audit(mut request: Passing, next: Next<'_>) -> ApiResponse {
    let Some(audit) = request.extensions().get::<Arc<Audit>>().cloned() else {
        return next.run(request).await;
    };
    let (info, user) = (info_of(&request), user_of(&request));
    let Some(mut telling) = audit.begin(&request, &user, &info) else { return next.run(request).await };
    if !telling.received().await {
        audit.rejected();
        let response = fail(&request, "failed to store audit event");
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
    let (parts, body) = response.into_parts();
    ApiResponse::from_parts(parts, Body::new(Told { body, _telling: telling }))
}

/// A body that goes on; its end, or that of its reader, is told.
struct Told {
    body: Body,
    _telling: Telling,
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
