//! How filters are strung together: each is a function of what it needs, a request, and what comes next.
//!
//! A chain is shared by all requests as it is, and filters borrow from it what they need. A tower service of
//! that depth is copied, layer by layer, for each request: that cost more than all filters together. For the
//! same reason a request lies in one place on its way, so that to hand it on moves a word.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::{Layer, Service};

use super::passed::Passed;
use apimachinery::wire::{ApiRequest, ApiResponse};
use clock::{FrameName, frame, is_profiled_here};

/// A request on its way down the chain.
pub type Passing = Box<Passed>;

/// A whole chain. Cloning shares it.
#[derive(Clone)]
pub struct Chain(Arc<dyn Handler>);

/// The rest of the chain, as a filter sees it.
#[derive(Clone, Copy)]
pub struct Next<'a>(&'a dyn Handler);

/// What a request can be handed to.
pub trait Handler: Send + Sync {
    /// Answers it.
    fn handle(&self, request: Passing) -> BoxFuture<'_, ApiResponse>;
}

/// An `async fn(&S, Passing, Next) -> ApiResponse`.
pub trait Filter<'a, S>: Send + Sync {
    /// What it does.
    type Work: Future<Output = ApiResponse> + Send + 'a;

    /// Begins with it.
    fn filter(&self, state: &'a S, request: Passing, next: Next<'a>) -> Self::Work;

    /// The path of the function, for profiles.
    fn path() -> FrameName
    where
        Self: Sized,
    {
        FrameName::of_type::<Self>()
    }
}

/// A layer for a [`tower::ServiceBuilder`]; see [`from_fn_with_state`].
#[derive(Clone)]
pub struct FilterLayer<S, F> {
    state: S,
    filter: F,
}

/// A filter, and what comes behind it.
pub struct Filtered<S, F, I> {
    state: S,
    filter: F,
    next: I,
}

/// A filter that needs nothing: an `async fn(Passing, Next) -> ApiResponse`.
#[derive(Clone)]
pub struct Plain<F>(F);

/// What stands at the end of a chain.
pub struct ChainEnd<F>(F);

/// A layer of a filter that needs something.
pub fn from_fn_with_state<S, F>(state: S, filter: F) -> FilterLayer<S, F> {
    FilterLayer { state, filter }
}

/// A layer of a filter that needs nothing.
pub fn from_fn<F>(filter: F) -> FilterLayer<(), Plain<F>> {
    FilterLayer { state: (), filter: Plain(filter) }
}

/// The end of a chain: whoever answers what was let through.
pub fn endpoint<F: Fn(Passed) -> Fut, Fut>(answer: F) -> ChainEnd<F> {
    ChainEnd(answer)
}

impl Chain {
    /// Of what a [`tower::ServiceBuilder`] has made of the layers.
    pub fn new(handler: impl Handler + 'static) -> Chain {
        Chain(Arc::new(handler))
    }
}

impl<'a> Next<'a> {
    /// The rest of a chain that begins with `handler`.
    pub(super) fn to(handler: &'a dyn Handler) -> Next<'a> {
        Next(handler)
    }

    /// Goes on, and comes back with the answer.
    pub fn run(self, request: Passing) -> BoxFuture<'a, ApiResponse> {
        self.0.handle(request)
    }
}

impl Service<ApiRequest> for Chain {
    type Response = ApiResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<ApiResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ApiRequest) -> Self::Future {
        let chain = self.0.clone();
        let request = Box::new(Passed::new(request));
        Box::pin(async move { Ok(chain.handle(request).await) })
    }
}

impl<S: Clone, F: Clone, I> Layer<I> for FilterLayer<S, F> {
    type Service = Filtered<S, F, I>;

    fn layer(&self, inner: I) -> Filtered<S, F, I> {
        Filtered { state: self.state.clone(), filter: self.filter.clone(), next: inner }
    }
}

impl<'a, S, F, Fut> Filter<'a, S> for F
where
    S: 'a,
    F: Fn(&'a S, Passing, Next<'a>) -> Fut + Send + Sync,
    Fut: Future<Output = ApiResponse> + Send + 'a,
{
    type Work = Fut;

    fn filter(&self, state: &'a S, request: Passing, next: Next<'a>) -> Fut {
        self(state, request, next)
    }
}

impl<'a, F, Fut> Filter<'a, ()> for Plain<F>
where
    F: Fn(Passing, Next<'a>) -> Fut + Send + Sync,
    Fut: Future<Output = ApiResponse> + Send + 'a,
{
    type Work = Fut;

    fn filter(&self, (): &'a (), request: Passing, next: Next<'a>) -> Fut {
        self.0(request, next)
    }

    fn path() -> FrameName {
        FrameName::of_type::<F>()
    }
}

impl<S, F, I> Handler for Filtered<S, F, I>
where
    S: Send + Sync,
    F: for<'a> Filter<'a, S>,
    I: Handler,
{
    fn handle(&self, request: Passing) -> BoxFuture<'_, ApiResponse> {
        Box::pin(frame(F::path(), self.filter.filter(&self.state, request, Next(&self.next))))
    }
}

impl<F, Fut> Handler for ChainEnd<F>
where
    F: Fn(Passed) -> Fut + Send + Sync,
    Fut: Future<Output = ApiResponse> + Send + 'static,
{
    fn handle(&self, request: Passing) -> BoxFuture<'_, ApiResponse> {
        let name = if is_profiled_here() { asked_for(&request) } else { FrameName::Static("a request") };
        Box::pin(frame(name, (self.0)(*request)))
    }
}

/// What a profile calls a request: its verb and resource, as `create pods/binding`, or its path.
fn asked_for(request: &Passing) -> FrameName {
    let info = &request.ctx.info;
    let verb = &info.verb;
    FrameName::Shared(match (info.is_resource_request, info.subresource.as_str()) {
        (false, _) => format!("{verb} {}", info.path).into(),
        (true, "") => format!("{verb} {}", info.resource).into(),
        (true, subresource) => format!("{verb} {}/{subresource}", info.resource).into(),
    })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;

    async fn mark(mark: &&'static str, mut request: Passing, next: Next<'_>) -> ApiResponse {
        request.headers_mut().append("way", mark.parse().unwrap());
        let mut response = next.run(request).await;
        response.headers_mut().append("way", mark.parse().unwrap());
        response
    }

    async fn refuse_deletes(request: Passing, next: Next<'_>) -> ApiResponse {
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
            .service(endpoint(|request: Passed| async move {
                let mut response = ApiResponse::default();
                *response.headers_mut() = request.headers().clone();
                response
            }));
        let service = Chain::new(chain);
        for (method, way, code) in [("GET", "abba", 200), ("DELETE", "a", 403)] {
            let request = http::Request::builder().method(method).body(Body::empty()).unwrap();
            let response = service.clone().oneshot(request).await.unwrap();
            let met: Vec<&str> =
                response.headers().get_all("way").iter().map(|value| value.to_str().unwrap()).collect();
            assert_eq!((met.concat().as_str(), response.status().as_u16()), (way, code));
        }
    }
}
