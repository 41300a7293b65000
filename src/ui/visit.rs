//! `Visit`: one request in a session's name. It is asked with what the guest showed to be invited, so that
//! the session is worth as much as that is just now: once that is nobody's any more the session is over.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body::Body as _;
use sync::Mutex;
use tokio::task::JoinSet;
use tower::ServiceExt;

use apimachinery::connection_cut::ConnectionCut;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, InProcessUser, PlainHttp, StatusAnswer};
use clock::Clock;

use super::guests::{Guest, GuestVisit, Guests};

/// How often it is looked, in real time, whether what a guest showed still holds while they read something
/// that does not end.
pub const CHECK_PERIOD: Duration = Duration::from_secs(30);
/// What costs little and tells nothing; whose credentials are wrong is refused even that.
const CHECKED_AT: &str = "/version";

/// A request of somebody who has a session.
pub(crate) struct Visit {
    pub(crate) api: ApiService,
    pub(crate) guests: Guests,
    /// Of the session.
    pub(crate) key: String,
    pub(crate) visit: GuestVisit,
    pub(crate) sockets: OpenSockets,
}

/// The connections of all sessions that go on with another protocol, as shells do: each is ended with its
/// session. Bound: one entry each, until at most [`CHECK_PERIOD`] after its end; a server has room for so
/// many connections and no more. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct OpenSockets(Arc<Mutex<JoinSet<()>>>);

impl OpenSockets {
    fn watch(&self, socket: impl Future<Output = ()> + Send + 'static) {
        let mut sockets = self.0.lock();
        // Those that have ended make place.
        while sockets.try_join_next().is_some() {}
        sockets.spawn(socket);
    }
}

impl Visit {
    /// Asks the API. What does not end does so with the session.
    pub(crate) async fn ask(self, mut request: ApiRequest) -> ApiResponse {
        // What keeps pages away from a server without credentials: here they had to have one.
        request.extensions_mut().remove::<PlainHttp>();
        introduce(&self.visit.guest, &mut request);
        let cut = request.extensions().get::<ConnectionCut>().cloned();
        let response = self.answer(request).await;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(cut) = cut {
                let sockets = self.sockets.clone();
                sockets.watch(self.cut_when_over(cut));
            }
            return response;
        }
        // What is passed on for others ends with them, too.
        let is_whole = response.body().size_hint().exact().is_some();
        if is_whole { response } else { response.map(|body| self.until_over(body)) }
    }

    async fn answer(&self, request: ApiRequest) -> ApiResponse {
        let response = self.api.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
        if is_strangers(&response) {
            self.guests.end(&self.key);
        }
        response
    }

    fn until_over(self, body: Body) -> Body {
        let clock = Clock::real();
        let check_at = clock.elapsed() + CHECK_PERIOD;
        let state = (body.into_data_stream(), self, clock, check_at);
        Body::from_stream(stream::unfold(state, |(mut parts, mut visit, clock, mut check_at)| async move {
            loop {
                let left = check_at.saturating_sub(clock.elapsed());
                tokio::select! {
                    biased;
                    _ = visit.visit.ended.changed() => return None,
                    () = clock.sleep(left) => {
                        visit.check().await;
                        check_at = clock.elapsed() + CHECK_PERIOD;
                    }
                    part = parts.next() => return part.map(|part| (part, (parts, visit, clock, check_at))),
                }
            }
        }))
    }

    /// A shell in a pod, and whatever else is no HTTP any more, ends with the session.
    async fn cut_when_over(mut self, cut: ConnectionCut) {
        let clock = Clock::real();
        while !cut.is_alone() {
            tokio::select! {
                biased;
                _ = self.visit.ended.changed() => return cut.make(),
                () = clock.sleep(CHECK_PERIOD) => self.check().await,
            }
        }
    }

    /// Ends the session if what its guest showed holds no more.
    async fn check(&self) {
        let mut request = ApiRequest::new(Body::empty());
        *request.uri_mut() = http::Uri::from_static(CHECKED_AT);
        introduce(&self.visit.guest, &mut request);
        self.answer(request).await;
    }
}

/// Who showed nothing, since they have the cluster in this process, is whom they say.
fn introduce(guest: &Arc<Guest>, request: &mut ApiRequest) {
    match &guest.shown {
        Some(shown) => shown.show_on(request),
        None => drop(request.extensions_mut().insert(InProcessUser(guest.user.clone()))),
    }
}

/// Whether the apiserver itself, and no server behind it, does not know who asks.
fn is_strangers(response: &ApiResponse) -> bool {
    response.status() == StatusCode::UNAUTHORIZED && response.extensions().get::<StatusAnswer>().is_some()
}

#[cfg(test)]
mod tests {
    use apimachinery::status::Status;
    use apimachinery::user::UserInfo;
    use apimachinery::wire::{ShownCredentials, status_response};
    use http::header::AUTHORIZATION;
    use std::future::poll_fn;

    use super::*;

    /// Knows one token; sends what does not end to others.
    fn api() -> ApiService {
        ApiService::new(tower::service_fn(|request: ApiRequest| async move {
            if request.uri().path() == "/proxied" {
                let mut response = ApiResponse::default();
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                return Ok(response);
            }
            if request.uri().path() == "/exec" {
                let mut response = ApiResponse::default();
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                return Ok(response);
            }
            let is_known = request.headers().get(AUTHORIZATION).is_some_and(|given| given == "Bearer good");
            if !is_known {
                return Ok(status_response(Status::unauthorized(), false));
            }
            Ok(ApiResponse::new(Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>())))
        }))
    }

    fn session(guests: &Guests, token: &str) -> String {
        let mut headers = http::HeaderMap::new();
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        let shown = Some(ShownCredentials { headers, certificates: None });
        let user = Arc::new(UserInfo::authenticated("jane", &[]));
        guests.enter(&guests.invite(Guest { user, shown }).unwrap()).unwrap().0
    }

    fn visit(guests: &Guests, key: &str) -> Visit {
        let visit = guests.visit(key).unwrap();
        let (guests, key, sockets) = (guests.clone(), key.to_owned(), OpenSockets::default());
        Visit { api: api(), guests, key, visit, sockets }
    }

    fn asked(path: &str) -> ApiRequest {
        http::Request::builder().uri(path).body(Body::empty()).unwrap()
    }

    #[tokio::test]
    async fn a_session_ends_with_what_was_shown_and_takes_its_streams_along() {
        let guests = Guests::default();
        let key = session(&guests, "good");
        let stream = visit(&guests, &key).ask(asked("/watch")).await;
        assert_eq!(stream.status(), 200);
        assert_eq!(visit(&guests, &key).ask(asked("/proxied")).await.status(), 401);
        assert!(guests.visit(&key).is_some(), "a pod said that");
        guests.end(&key);
        assert!(stream.into_body().into_data_stream().next().await.is_none());
        let revoked = session(&guests, "revoked");
        assert_eq!(visit(&guests, &revoked).ask(asked("/api")).await.status(), 401);
        assert!(guests.visit(&revoked).is_none());
    }

    #[tokio::test]
    async fn a_shell_ends_with_its_session_and_nothing_is_left_of_one_that_ended_before() {
        let guests = Guests::default();
        let key = session(&guests, "good");
        let exec = |cut: &ConnectionCut| {
            let mut request = asked("/exec");
            request.extensions_mut().insert(cut.clone());
            request
        };
        let shell = ConnectionCut::default();
        let other = ConnectionCut::default();
        let asking = visit(&guests, &key);
        let sockets = asking.sockets.clone();
        assert_eq!(asking.ask(exec(&shell)).await.status(), 101);
        let again = Visit { sockets: sockets.clone(), ..visit(&guests, &key) };
        assert_eq!(again.ask(exec(&other)).await.status(), 101);
        tokio::task::yield_now().await;
        assert!(!shell.is_made());
        guests.end(&key);
        poll_fn(|context| shell.poll_made(context)).await;
        poll_fn(|context| other.poll_made(context)).await;
        let mut all = std::mem::take(&mut *sockets.0.lock());
        while all.join_next().await.is_some() {}
    }

    #[tokio::test]
    async fn it_is_looked_while_something_is_read() {
        let guests = Guests::default();
        let key = session(&guests, "revoked");
        visit(&guests, &key).check().await;
        assert!(guests.visit(&key).is_none());
        let key = session(&guests, "good");
        visit(&guests, &key).check().await;
        assert!(guests.visit(&key).is_some());
    }
}
