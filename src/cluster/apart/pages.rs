//! The pages of a component at its own port (`--secure-port`, `--bind-address`): `healthz`, `livez` and
//! `readyz` for everybody, `metrics` and `configz` for whoever may read them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::json;

use super::ApartError;
use super::delegated::{Delegated, PresentedProof};
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, text_response};
use apiserver::server::{Server, Tls, bind};
use clock::Clock;
use pki::{Authority, Identity};

const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Writes what a component counts.
pub(crate) type CountedText = Arc<dyn Fn() -> String + Send + Sync>;

/// What a component says of itself.
#[derive(Clone)]
pub(crate) struct OwnPages {
    pub(crate) counted: CountedText,
    /// What it goes by, as JSON.
    pub(crate) configz: Arc<str>,
}

/// Serves the pages.
///
/// # Errors
/// The port, or its certificate.
pub(crate) async fn serve(
    address: SocketAddr,
    identity: Identity,
    (delegated, authority): (Arc<Delegated>, &str),
    own: OwnPages,
) -> Result<Server, ApartError> {
    let service = ApiService::new(tower::service_fn(move |request: ApiRequest| {
        let (delegated, own) = (delegated.clone(), own.clone());
        async move {
            let (path, presented) = (request.uri().path().to_owned(), delegated.presented(&request));
            Ok(answer(&path, presented, &delegated, &own).await)
        }
    }));
    listen(address, identity, authority, service).await
}

/// Serves anything at a port of a component.
///
/// # Errors
/// As [`serve`].
pub(super) async fn listen(
    address: SocketAddr,
    identity: Identity,
    authority: &str,
    service: ApiService,
) -> Result<Server, ApartError> {
    let listener = bind(address).await;
    let listener = listener.map_err(|error| {
        let advice = "choose another port (0 is none), or end who has it";
        ApartError(format!("failed to listen on {address}: {error}; {advice}"))
    })?;
    let client_authorities = if authority.is_empty() { Vec::new() } else { vec![authority.to_owned()] };
    let tls = Tls { identity, client_authorities, demands_client_certificates: false };
    let started = Server::start(listener, Some(&tls), service);
    started.map_err(|error| ApartError(format!("cannot serve on {address}: {error}")))
}

/// A certificate that the component has signed itself, as upstream's do that are given none.
///
/// # Errors
/// It could not be made.
pub(crate) fn self_signed(address: SocketAddr, clock: &Clock) -> Result<Identity, ApartError> {
    let made = Authority::generate(clock.now())
        .and_then(|authority| authority.server(&["localhost"], &[address.ip()], clock.now()));
    made.map_err(|error| ApartError(error.to_string()))
}

async fn answer(path: &str, presented: PresentedProof, delegated: &Delegated, own: &OwnPages) -> ApiResponse {
    match path {
        "/healthz" | "/livez" | "/readyz" => text_response(http::StatusCode::OK, "ok"),
        "/metrics" | "/configz" => match may_read(path, presented, delegated).await {
            Ok(()) if path == "/metrics" => page((own.counted)(), METRICS),
            Ok(()) => page(own.configz.to_string(), JSON),
            Err(status) => refused(&status),
        },
        _ => text_response(http::StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn page(text: String, content_type: HeaderValue) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

async fn may_read(path: &str, presented: PresentedProof, delegated: &Delegated) -> Result<(), Status> {
    let user = delegated.authenticate(presented).await?;
    let attributes = json!({"nonResourceAttributes": {"verb": "get", "path": path}});
    if delegated.allows(&user, &attributes).await? {
        return Ok(());
    }
    let text = format!("forbidden: User {:?} cannot get path {path:?}", user.name);
    Err(Status::failure(403, "Forbidden", text))
}

/// In plain text, as components say it.
pub(super) fn refused(status: &Status) -> ApiResponse {
    let code = http::StatusCode::from_u16(status.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    text_response(code, format!("{}\n", status.message))
}
