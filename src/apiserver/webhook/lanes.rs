//! `Lanes`: HTTP/2 to one server, over as many connections as its bound of streams asks for (Go's
//! `http2.Transport` as client-go sets it up): for components that have many watches open at once. To a
//! server without HTTP/2 it is HTTP/1.1, with a connection for each request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::TokioTimer;
use sync::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::config::ClientConfig;
use super::connector::Connector;
use super::errors::{CallError, describe};
use super::transport::{Http, builder, secured};

/// Requests under way on one connection: servers take a hundred (`http2-max-streams-per-connection`).
const MAX_STREAMS: usize = 95;
/// Connections of one client; at the bound further requests wait until others have ended.
const MAX_LANES: usize = 128;
/// A connection on which nothing has come for so long is asked whether it is there (`ReadIdleTimeout`).
const READ_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// It is given up when it does not say so within this (`PingTimeout`).
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Windows as those of Go's client: a watch that nobody reads holds up no other.
const CONNECTION_WINDOW: u32 = 1 << 30;
const STREAM_WINDOW: u32 = 4 << 20;

/// Connections to one server. Cloning shares them.
#[derive(Clone)]
pub struct Lanes(Arc<LanesInner>);

struct LanesInner {
    config: ClientConfig,
    /// Bound: [`MAX_LANES`].
    lanes: Mutex<Vec<HttpLane>>,
}

/// One connection.
#[derive(Clone)]
struct HttpLane {
    http: Http,
    places: Arc<Semaphore>,
}

impl Lanes {
    /// To the target of `config`; nothing is connected before the first request.
    pub fn new(config: ClientConfig) -> Lanes {
        Lanes(Arc::new(LanesInner { config, lanes: Mutex::default() }))
    }

    /// Sends a request with an absolute URL.
    ///
    /// # Errors
    /// In Go's words.
    pub async fn send(&self, request: http::Request<Body>) -> Result<http::Response<Body>, CallError> {
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let failed = |why: String| CallError::failed(&method, &url, &why);
        let (lane, place) = self.free().await.map_err(failed)?;
        let sent = lane.http.request(request).await;
        let response = sent.map_err(|error| failed(describe(&error, 0)))?;
        Ok(response.map(|body| Body::new(HeldAnswer { body, _place: place })))
    }

    /// One that has a place.
    async fn free(&self) -> Result<(HttpLane, OwnedSemaphorePermit), String> {
        let last = match self.0.find()? {
            LaneFound::Free(lane, place) => return Ok((lane, place)),
            LaneFound::Full(last) => last,
        };
        let place = last.places.clone().acquire_owned().await.map_err(|error| error.to_string())?;
        Ok((last, place))
    }
}

enum LaneFound {
    Free(HttpLane, OwnedSemaphorePermit),
    /// There are as many as there may be.
    Full(HttpLane),
}

impl LanesInner {
    fn find(&self) -> Result<LaneFound, String> {
        let mut lanes = self.lanes.lock();
        let taken = |lane: &HttpLane| Some((lane.clone(), lane.places.clone().try_acquire_owned().ok()?));
        if let Some((lane, place)) = lanes.iter().find_map(taken) {
            return Ok(LaneFound::Free(lane, place));
        }
        if let Some(lane) = lanes.last().filter(|_| lanes.len() >= MAX_LANES) {
            return Ok(LaneFound::Full(lane.clone()));
        }
        let lane = self.connect()?;
        lanes.push(lane.clone());
        let place = lane.places.clone().try_acquire_owned().map_err(|error| error.to_string())?;
        Ok(LaneFound::Free(lane, place))
    }

    fn connect(&self) -> Result<HttpLane, String> {
        let connector = secured(&self.config)
            .map_err(|why| why.0)?
            .enable_all_versions()
            .wrap_connector(Connector::new(None));
        let http = builder()
            .timer(TokioTimer::new())
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_keep_alive_interval(READ_IDLE_TIMEOUT)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build(connector);
        Ok(HttpLane { http, places: Arc::new(Semaphore::new(MAX_STREAMS)) })
    }
}

/// An answer that takes a place until it is read, or given up.
struct HeldAnswer {
    body: Incoming,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for HeldAnswer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::WebhookTarget;

    #[tokio::test]
    async fn a_connection_that_is_full_is_not_waited_for() {
        let lanes = Lanes::new(ClientConfig::new(WebhookTarget::Url("http://127.0.0.1:1".into())));
        let mut places = Vec::new();
        for _ in 0..=MAX_STREAMS {
            places.push(lanes.free().await.unwrap().1);
        }
        assert_eq!(lanes.0.lanes.lock().len(), 2);
        // What is free again is taken before another is opened.
        drop(places.remove(0));
        places.push(lanes.free().await.unwrap().1);
        assert_eq!(lanes.0.lanes.lock().len(), 2);
    }
}
