//! `Interceptor`: what somebody above the apiserver does to requests on their way. The apiserver knows
//! nothing of why; upstream's nearest is a wrapper around the handler (`BuildHandlerChainFunc`).
//!
//! There are two places for one in the chain: behind authentication, where every request passes whose user is
//! known, and behind authorization, where only those pass that will be served. A request that an interceptor
//! does not want goes on without a future of its own: that costs one call.

use std::sync::Arc;

use futures::future::BoxFuture;
use tower::Layer;

use super::chain::{Handler, Next, Passing};
use super::passed::Passed;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiResponse;

/// What the users of whoever is above the apiserver are called: a test kit asks in such a name.
pub const OWN_USERS: &str = "kubarium:";
/// In the `extra` of a user in whose name, and with whose rights, a test kit asks itself.
const ON_BEHALF: &str = "kubarium:on-behalf";

/// Whether the test kit asks, in its own name or on behalf of somebody: nothing is done to that, and it is
/// not remembered.
pub fn is_own(user: &UserInfo) -> bool {
    user.name.starts_with(OWN_USERS) || user.extra.contains_key(ON_BEHALF)
}

/// A user whose rights are those of `user`, when the test kit asks for them.
#[must_use]
pub fn on_behalf_of(user: &UserInfo) -> UserInfo {
    let mut user = user.clone();
    user.extra.insert(ON_BEHALF.to_owned(), vec![]);
    user
}

/// Sees requests, and may do something else with them than to hand them on.
pub trait Interceptor: Send + Sync {
    /// Whether it wants this one; asked for every request.
    fn wants(&self, request: &Passed) -> bool;

    /// Answers one that it wanted, or hands it on.
    fn intercept<'a>(&'a self, request: Passing, next: Next<'a>) -> BoxFuture<'a, ApiResponse>;
}

/// The place of an interceptor in the chain; none is there when none is needed.
pub struct InterceptorLayer(pub Option<Arc<dyn Interceptor>>);

/// An interceptor, and what comes behind it.
pub struct Intercepted<I> {
    interceptor: Option<Arc<dyn Interceptor>>,
    next: I,
}

impl<I> Layer<I> for InterceptorLayer {
    type Service = Intercepted<I>;

    fn layer(&self, next: I) -> Intercepted<I> {
        Intercepted { interceptor: self.0.clone(), next }
    }
}

impl<I: Handler> Handler for Intercepted<I> {
    fn handle(&self, request: Passing) -> BoxFuture<'_, ApiResponse> {
        match &self.interceptor {
            Some(interceptor) if interceptor.wants(&request) => {
                interceptor.intercept(request, Next::to(&self.next))
            }
            _ => self.next.handle(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;
    use crate::filters::chain::{Chain, endpoint};

    struct Teapot;

    impl Interceptor for Teapot {
        fn wants(&self, request: &Passed) -> bool {
            request.uri().path() == "/tea"
        }

        fn intercept<'a>(&'a self, request: Passing, next: Next<'a>) -> BoxFuture<'a, ApiResponse> {
            Box::pin(async move {
                let mut response = next.run(request).await;
                *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
                response
            })
        }
    }

    #[tokio::test]
    async fn only_what_it_wants_is_intercepted() {
        for (interceptor, path, code) in
            [(true, "/tea", 418), (true, "/coffee", 200), (false, "/tea", 200), (false, "/coffee", 200)]
        {
            let interceptor = interceptor.then(|| Arc::new(Teapot) as Arc<dyn Interceptor>);
            let chain = ServiceBuilder::new()
                .layer(InterceptorLayer(interceptor))
                .service(endpoint(|_: Passed| async { ApiResponse::default() }));
            let request = http::Request::get(path).body(Body::empty()).unwrap();
            let response = Chain::new(chain).oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), code, "{path}");
        }
    }
}
