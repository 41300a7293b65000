//! Sends clients elsewhere while the server ends (`filters.WithRetryAfter`).

use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode, Version};

use super::{Next, Passing};
use crate::shutdown::Shutdown;
use apimachinery::wire::{ApiResponse, RemoteAddress, text_response};

/// Probes and scrapes are answered to the end.
const EXEMPT: &[&str] = &["/readyz", "/livez", "/healthz", "/metrics"];
/// After how many seconds a client may try again, upstream's number.
const AFTER_SECONDS: HeaderValue = HeaderValue::from_static("5");

/// Refuses what comes from outside when the server does not take anything new, and notes what is finished
/// before it stops. None where it is not to: then nothing is counted.
pub async fn send_elsewhere(shutdown: &Option<Shutdown>, request: Passing, next: Next<'_>) -> ApiResponse {
    let Some(shutdown) = shutdown.as_ref().filter(|_| !is_exempt(&request)) else {
        return next.run(request).await;
    };
    // Noted before it is looked whether it is refused: who waits for all misses none that is let in.
    let is_waited_for = !request.ctx.info.is_long_running();
    let _under_way = is_waited_for.then(|| shutdown.note());
    if shutdown.refuses_new() {
        return refusal(request.version());
    }
    next.run(request).await
}

/// The components of this process have nobody else whom they could ask.
fn is_exempt(request: &Passing) -> bool {
    let is_from_outside = request.extensions().get::<RemoteAddress>().is_some();
    !is_from_outside || EXEMPT.iter().any(|prefix| request.uri().path().starts_with(prefix))
}

fn refusal(version: Version) -> ApiResponse {
    let text = "The apiserver is shutting down, please try again later.\n";
    let mut response = text_response(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(RETRY_AFTER, AFTER_SECONDS);
    // HTTP/2 has a frame for that, which the end of the server sends.
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;

    use axum::body::Body;
    use tokio::sync::Notify;
    use tower::{ServiceBuilder, ServiceExt};

    use super::*;
    use crate::filters::chain::{Chain, endpoint, from_fn_with_state as with};
    use crate::filters::passed::Passed;

    /// Answers `/slow` when it is told to, anything else at once.
    fn chain(shutdown: &Shutdown, finish: &Arc<Notify>) -> Chain {
        let finish = finish.clone();
        let answer = move |request: Passed| {
            let finish = finish.clone();
            async move {
                if request.uri().path() == "/slow" {
                    finish.notified().await;
                }
                text_response(StatusCode::OK, "served")
            }
        };
        let layers = ServiceBuilder::new().layer(with(Some(shutdown.clone()), send_elsewhere));
        Chain::new(layers.service(endpoint(answer)))
    }

    async fn ask(chain: &Chain, path: &str, is_from_outside: bool) -> ApiResponse {
        let mut request = http::Request::builder().uri(path).body(Body::empty()).unwrap();
        if is_from_outside {
            request.extensions_mut().insert(RemoteAddress("192.0.2.1:1".parse().unwrap()));
        }
        chain.clone().oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_new_is_sent_elsewhere_and_what_is_under_way_finished() {
        let shutdown = Shutdown::default();
        let finish = Arc::default();
        let chain = chain(&shutdown, &finish);
        let mut slow = pin!(ask(&chain, "/slow", true));
        assert!(futures::poll!(&mut slow).is_pending());
        assert_eq!(ask(&chain, "/api", true).await.status(), 200);
        shutdown.refuse_new();
        let mut drained = pin!(shutdown.drained());
        assert!(futures::poll!(&mut drained).is_pending(), "one is under way");
        let refused = ask(&chain, "/api", true).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()[RETRY_AFTER]), (429, &AFTER_SECONDS));
        assert_eq!(refused.headers()[CONNECTION], "close");
        let text = axum::body::to_bytes(refused.into_body(), 1 << 10).await.unwrap();
        assert_eq!(text, "The apiserver is shutting down, please try again later.\n");
        for (path, is_from_outside) in [("/readyz", true), ("/metrics", true), ("/api", false)] {
            assert_eq!(ask(&chain, path, is_from_outside).await.status(), 200, "{path}");
        }
        finish.notify_one();
        assert_eq!(slow.await.status(), 200);
        drained.await;
    }
}
