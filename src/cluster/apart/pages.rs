//! The pages of a component at its own port (`--secure-port`, `--bind-address`): `healthz`, `livez` and
//! `readyz` for everybody; `metrics`, `configz`, `statusz`, `flagz` and `debug` for whoever may read them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use serde_json::json;

use super::ApartError;
use super::delegated::{Delegated, PresentedProof};
use crate::cluster::component_health::ComponentHealth;
use crate::cluster::component_zpages::ComponentZPages;
use crate::cluster::serving::made_at;
use apimachinery::status::{Status, StatusDetails};
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, ApiResponse, ApiService, status_response, text_response};
use apiserver::endpoints::routes::debug::{Debugging, is_of_debug};
use apiserver::server::{Server, Tls, bind};
use clock::Clock;
use component_base::health::HEALTH_PATHS;
use pki::{Authority, Identity};

const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Writes what a component counts.
pub(crate) type CountedText = Arc<dyn Fn() -> String + Send + Sync>;

/// What a component says of itself.
#[derive(Clone)]
pub(crate) struct OwnPages {
    pub(crate) counted: CountedText,
    /// How it is, and what came of asking (`/metrics/slis`).
    pub(crate) health: ComponentHealth,
    /// What it goes by, as JSON.
    pub(crate) configz: Arc<str>,
    /// `statusz` and `flagz`.
    pub(crate) zpages: ComponentZPages,
    /// What is shown below `/debug`.
    pub(crate) debugging: Debugging,
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
        async move { Ok(answer(request, &delegated, &own).await) }
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
    let made = Authority::generate(made_at(clock))
        .and_then(|authority| authority.server(&["localhost"], &[address.ip()], made_at(clock)));
    made.map_err(|error| ApartError(error.to_string()))
}

/// All but whether it is well is for whom the apiserver lets read it, also what there is not.
async fn answer(request: ApiRequest, delegated: &Delegated, own: &OwnPages) -> ApiResponse {
    let path = request.uri().path().to_owned();
    if let Some(asked) = HEALTH_PATHS.into_iter().find(|asked| path[1..] == **asked) {
        let is_verbose =
            request.uri().query().is_some_and(|query| query.split('&').any(|it| it == "verbose"));
        let answer = own.health.ask(asked, is_verbose);
        let code = if answer.is_well { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        return text_response(code, answer.text);
    }
    let verb = request.method().as_str().to_ascii_lowercase();
    let presented = delegated.presented(&request);
    if let Err(status) = may(&verb, &path, presented, delegated).await {
        return status_response(status, false);
    }
    match path.as_str() {
        "/metrics" => page((own.counted)(), METRICS),
        "/metrics/slis" => page(own.health.slis(), METRICS),
        "/configz" => page(own.configz.to_string(), JSON),
        debug if is_of_debug(debug) => own.debugging.respond(debug, request, &own.zpages.clock).await,
        other => {
            let shown = other.strip_prefix('/').and_then(|name| own.zpages.page(name));
            let missing = || text_response(StatusCode::NOT_FOUND, "404 page not found\n");
            shown.map_or_else(missing, |text| text_response(StatusCode::OK, text))
        }
    }
}

fn page(text: String, content_type: HeaderValue) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

async fn may(verb: &str, path: &str, presented: PresentedProof, delegated: &Delegated) -> Result<(), Status> {
    let user = match presented {
        // Who shows nothing is nobody in particular, which a ClusterRole may let read something.
        PresentedProof::Nothing => UserInfo::anonymous(),
        shown => delegated.authenticate(shown).await?,
    };
    let attributes = json!({"nonResourceAttributes": {"verb": verb, "path": path}});
    if delegated.allows(&user, &attributes).await? {
        return Ok(());
    }
    let text = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
    Err(Status::failure(403, "Forbidden", text).with_details(StatusDetails::default()))
}
