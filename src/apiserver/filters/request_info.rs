//! Reads what the request asks for from its method, path and query (`filters.WithRequestInfo`).

use std::sync::Arc;

use super::{Next, Passing, fail};
use crate::request::RequestInfo;
use apimachinery::wire::ApiResponse;

/// Sets what the request asks for. A path that begins as a resource's and names none is a
/// 500, as upstream.
pub async fn resolve_request_info(mut request: Passing, next: Next<'_>) -> ApiResponse {
    let uri = request.uri();
    match RequestInfo::new(request.method(), uri.path(), uri.query().unwrap_or_default()) {
        Ok(info) => {
            request.ctx.info = Arc::new(info);
            next.run(request).await
        }
        Err(error) => fail(&mut request, &format!("failed to create RequestInfo: {error}")),
    }
}
