//! `Beside`: what answers below a path that is not the API's. Who puts the server together mounts it;
//! requests reach it through the whole chain, and the server knows nothing else of it.

use std::sync::Arc;

use sync::{Mutex, MutexGuard};
use tower::ServiceExt;

use super::authorizer::{Authorizer, may_read};
use super::request::RequestContext;
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, InProcessUser};

/// What is mounted beside the API: nothing, or one service. Cloning shares it.
#[derive(Clone, Default)]
pub struct Beside(Arc<Mutex<Option<ApiService>>>);

/// What was mounted is there for as long as this is held: it may hold what holds the server.
pub struct Mounted(Beside);

impl Beside {
    /// Hands everything below [`super::request::BESIDE`] to this service, in place of the one before.
    #[must_use]
    pub fn mount(&self, service: ApiService) -> Mounted {
        *self.lock() = Some(service);
        Mounted(self.clone())
    }

    /// Hands the request on, with who asks in its extensions as [`InProcessUser`], and what they
    /// may read.
    pub(crate) async fn serve(
        &self,
        mut request: ApiRequest,
        ctx: &RequestContext,
        authorizer: &Arc<dyn Authorizer>,
    ) -> ApiResponse {
        let Some(service) = self.lock().clone() else {
            return ctx.refuse(request.headers(), Status::path_not_found());
        };
        request.extensions_mut().insert(InProcessUser(ctx.user.clone()));
        request.extensions_mut().insert(may_read(authorizer, &ctx.user));
        service.oneshot(request).await.unwrap_or_else(|never| match never {})
    }

    fn lock(&self) -> MutexGuard<'_, Option<ApiService>> {
        self.0.lock()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let service = self.0.lock().take();
        drop(service);
    }
}
