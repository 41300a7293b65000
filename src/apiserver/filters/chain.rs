//! How filters are strung together: each is a function of a request and of what comes next.
//!
//! The shape is that of axum's `middleware::from_fn`, and filters read the same. A chain is shared by all
//! requests as it is, whereas a tower service of that depth is copied, layer by layer, for each of them: that
//! cost a request more than all its filters together.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use axum::extract::State;
use futures::FutureExt;
use futures::future::BoxFuture;
use tower::{Layer, Service};

use crate::apimachinery::wire::{ApiRequest, ApiResponse};

/// The rest of the chain, as a filter sees it. Cloning shares it.
#[derive(Clone)]
pub struct Next(Arc<dyn Handler>);

trait Handler: Send + Sync {
    fn handle(&self, request: ApiRequest) -> BoxFuture<'static, ApiResponse>;
}

impl Next {
    /// Goes on, and comes back with the answer.
    pub async fn run(self, request: ApiRequest) -> ApiResponse {
        self.0.handle(request).await
    }
}

impl Service<ApiRequest> for Next {
    type Response = ApiResponse;
    type Error = Infallible;
    type Future = futures::future::Map<
        BoxFuture<'static, ApiResponse>,
        fn(ApiResponse) -> Result<ApiResponse, Infallible>,
    >;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        self.0.handle(request).map(Ok)
    }
}

/// A layer for a [`tower::ServiceBuilder`]; see [`from_fn_with_state`].
#[derive(Clone)]
pub struct FilterLayer<S, F> {
    state: S,
    filter: F,
}

/// A filter, and what comes behind it.
pub struct Filtered<S, F> {
    state: S,
    filter: F,
    next: Next,
}

/// What stands at the end of a chain.
pub struct Endpoint<F>(F);

/// A layer of a filter that needs something: an `async fn(State<S>, ApiRequest, Next) -> ApiResponse`.
pub fn from_fn_with_state<S, F>(state: S, filter: F) -> FilterLayer<S, F> {
    FilterLayer { state, filter }
}

/// A layer of a filter that needs nothing: an `async fn(ApiRequest, Next) -> ApiResponse`.
pub fn from_fn<F, Fut>(filter: F) -> FilterLayer<(), impl Fn(State<()>, ApiRequest, Next) -> Fut + Clone>
where
    F: Fn(ApiRequest, Next) -> Fut + Clone,
{
    FilterLayer { state: (), filter: move |_: State<()>, request, next| filter(request, next) }
}

/// The end of a chain: whoever answers what was let through.
pub fn endpoint<F: Fn(ApiRequest) -> Fut, Fut>(answer: F) -> Endpoint<F> {
    Endpoint(answer)
}

impl<S: Clone, F: Clone, I: Into<Next>> Layer<I> for FilterLayer<S, F> {
    type Service = Filtered<S, F>;

    fn layer(&self, inner: I) -> Filtered<S, F> {
        Filtered { state: self.state.clone(), filter: self.filter.clone(), next: inner.into() }
    }
}

impl<S, F, Fut> Handler for Filtered<S, F>
where
    S: Clone + Send + Sync,
    F: Fn(State<S>, ApiRequest, Next) -> Fut + Send + Sync,
    Fut: Future<Output = ApiResponse> + Send + 'static,
{
    fn handle(&self, request: ApiRequest) -> BoxFuture<'static, ApiResponse> {
        Box::pin((self.filter)(State(self.state.clone()), request, self.next.clone()))
    }
}

impl<F, Fut> Handler for Endpoint<F>
where
    F: Fn(ApiRequest) -> Fut + Send + Sync,
    Fut: Future<Output = ApiResponse> + Send + 'static,
{
    fn handle(&self, request: ApiRequest) -> BoxFuture<'static, ApiResponse> {
        Box::pin((self.0)(request))
    }
}

impl<S, F, Fut> From<Filtered<S, F>> for Next
where
    S: Clone + Send + Sync + 'static,
    F: Fn(State<S>, ApiRequest, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ApiResponse> + Send + 'static,
{
    fn from(filtered: Filtered<S, F>) -> Next {
        Next(Arc::new(filtered))
    }
}

impl<F, Fut> From<Endpoint<F>> for Next
where
    F: Fn(ApiRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ApiResponse> + Send + 'static,
{
    fn from(endpoint: Endpoint<F>) -> Next {
        Next(Arc::new(endpoint))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;

    async fn mark(State(mark): State<&'static str>, mut request: ApiRequest, next: Next) -> ApiResponse {
        request.headers_mut().append("way", mark.parse().unwrap());
        let mut response = next.run(request).await;
        response.headers_mut().append("way", mark.parse().unwrap());
        response
    }

    async fn refuse_deletes(request: ApiRequest, next: Next) -> ApiResponse {
        if request.method() == http::Method::DELETE {
            return http::Response::builder().status(403).body(Body::empty()).unwrap();
        }
        next.run(request).await
    }

    #[tokio::test]
    async fn filters_are_met_in_the_order_of_the_list() {
        let chain = ServiceBuilder::new()
            .layer(from_fn_with_state("a", mark))
            .layer(from_fn(refuse_deletes))
            .layer(from_fn_with_state("b", mark))
            .service(endpoint(|request: ApiRequest| async move {
                let mut response = ApiResponse::default();
                *response.headers_mut() = request.headers().clone();
                response
            }));
        let service = Next::from(chain);
        for (method, way, code) in [("GET", "abba", 200), ("DELETE", "a", 403)] {
            let request = http::Request::builder().method(method).body(Body::empty()).unwrap();
            let response = service.clone().oneshot(request).await.unwrap();
            let met: Vec<&str> =
                response.headers().get_all("way").iter().map(|value| value.to_str().unwrap()).collect();
            assert_eq!((met.concat().as_str(), response.status().as_u16()), (way, code));
        }
    }
}
