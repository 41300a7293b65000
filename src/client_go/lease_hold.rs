//! `LeaseHold`: whether a Lease is still ours, by our own clock, for those who act in its name.
//!
//! Whoever was stopped for a while, as by SIGSTOP or by a machine without time for it, goes on in the middle
//! of its work, and another has perhaps taken the Lease meanwhile. So each write asks first: after the
//! renewal was due none is made until the Lease was renewed. What was on its way when the pause began is not
//! called back.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use sync::Mutex;
use tower::ServiceExt;

use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiService, status_response};
use clock::Clock;

/// How long a Lease is ours. Cloning shares it.
#[derive(Clone, Debug)]
pub struct LeaseHold {
    clock: Clock,
    until: Arc<Mutex<Duration>>,
}

impl LeaseHold {
    /// Of nobody yet.
    pub(super) fn new(clock: Clock) -> LeaseHold {
        LeaseHold { clock, until: Arc::default() }
    }

    /// It is ours until then.
    pub(super) fn last_until(&self, until: Duration) {
        *self.until.lock() = until;
    }

    /// It is ours no more.
    pub(super) fn end(&self) {
        self.last_until(Duration::ZERO);
    }

    /// Whether it is ours.
    pub fn is_held(&self) -> bool {
        self.clock.elapsed() < *self.until.lock()
    }

    /// Refuses to write when it is not ours.
    ///
    /// # Errors
    /// 503: whoever wants it tries again, or has ended by then.
    pub fn check(&self, method: &Method) -> Result<(), Status> {
        if method == Method::GET || self.is_held() {
            return Ok(());
        }
        let why = "the Lease was not renewed in time: nothing is written in its name until it is";
        Err(Status::failure(503, "ServiceUnavailable", why))
    }

    /// An apiserver that is asked to write only while it is ours. Each request carries this, for whoever lets
    /// it wait.
    pub fn guard(&self, service: ApiService) -> ApiService {
        let hold = self.clone();
        ApiService::new(tower::service_fn(move |mut request: ApiRequest| {
            let (hold, service) = (hold.clone(), service.clone());
            async move {
                if let Err(status) = hold.check(request.method()) {
                    return Ok(status_response(status, true));
                }
                request.extensions_mut().insert(hold);
                service.oneshot(request).await
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use apimachinery::wire::ApiResponse;

    #[tokio::test]
    async fn after_the_time_nothing_is_written_until_it_is_ours_again() {
        let clock = Clock::stepped(DateTime::UNIX_EPOCH);
        let hold = LeaseHold::new(clock.clone());
        let done = ApiService::new(tower::service_fn(|_| std::future::ready(Ok(ApiResponse::default()))));
        let guarded = hold.guard(done);
        let ask = async |method: Method| {
            let mut request = ApiRequest::default();
            *request.method_mut() = method;
            guarded.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        assert_eq!((ask(Method::POST).await, ask(Method::GET).await), (503, 200), "it never was ours");
        hold.last_until(Duration::from_secs(10));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(ask(method).await, 200);
        }
        clock.advance(Duration::from_secs(10));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(ask(method).await, 503);
        }
        hold.last_until(Duration::from_secs(20));
        assert_eq!(ask(Method::DELETE).await, 200);
        hold.end();
        assert_eq!(ask(Method::DELETE).await, 503);
    }
}
