//! What those need who check service account tokens themselves (`routes.OpenIDMetadataServer`): the discovery
//! document and the public keys.

use axum::body::Body;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;

use crate::authentication::service_account::metadata::{
    self, CONFIGURATION_PATH, JWKS_PATH, is_discoverable,
};
use crate::endpoints::EndpointContext;
use apimachinery::wire::{ApiResponse, text_response};

/// Where they are.
pub(crate) const PATHS: [&str; 2] = [CONFIGURATION_PATH, JWKS_PATH];

/// `/.well-known/openid-configuration`; `host` is where the client found this server.
pub(crate) fn configuration(server: &EndpointContext, host: &str) -> ApiResponse {
    match &server.token_discovery {
        Some(discovery) if is_discoverable(&discovery.issuer) => {
            let here = || format!("https://{host}{JWKS_PATH}");
            let jwks_uri = discovery.jwks_uri.clone().unwrap_or_else(here);
            respond("application/json", &discovery.keys.configuration(&discovery.issuer, &jwks_uri))
        }
        _ => not_found(),
    }
}

/// `/openid/v1/jwks`
pub(crate) fn jwks(server: &EndpointContext) -> ApiResponse {
    match &server.token_discovery {
        Some(discovery) if is_discoverable(&discovery.issuer) => {
            respond("application/jwk-set+json", &discovery.keys.jwks())
        }
        _ => not_found(),
    }
}

fn respond(media_type: &'static str, document: &Value) -> ApiResponse {
    let mut response = ApiResponse::new(Body::from(document.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(metadata::CACHE_CONTROL));
    response
}

fn not_found() -> ApiResponse {
    text_response(StatusCode::NOT_FOUND, "404 page not found\n")
}
