//! Finds out who asks, or answers 401 (`filters.WithAuthentication`).

use std::sync::Arc;

use http::header::{WARNING, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::impersonation::PREFIX as IMPERSONATION_HEADERS;
use super::{Next, Passing, refuse};
use crate::audit::Audit;
use crate::audit::policy::AuditStage;
use crate::authentication::{Authenticators, remarks};
use crate::request::warning_header;
use apimachinery::status::Status;
use apimachinery::wire::{ApiRequest, ApiResponse, InProcessUser, ShownCredentials};

/// Sets who asks, and takes the credentials out of the headers, so that nobody below can leak them. What the
/// authenticators said of a request that is refused is in the answer's extensions, which no client sees.
pub async fn authenticate(
    (authenticators, audit): &(Arc<Authenticators>, Option<Arc<Audit>>),
    mut request: Passing,
    next: Next<'_>,
) -> ApiResponse {
    let asked = authenticators.authenticate(&request);
    match asked.await {
        Ok(authenticated) => {
            let is_component = request.extensions().get::<InProcessUser>().is_some();
            let info = &request.ctx.info;
            let is_kept = info.is_beside() && !info.is_read_only() && !is_component;
            let before = is_kept.then(|| request.headers().clone());
            authenticators.remove_credentials(&mut request);
            if let Some(before) = before {
                let shown = shown(before, &request);
                request.extensions_mut().insert(shown);
            }
            if let Some(line) = request.line.as_ref().filter(|_| !is_component) {
                line.asked_by(&authenticated.user);
            }
            request.ctx.user = authenticated.user.clone();
            let remarks = authenticated.remarks.clone();
            request.story.authenticated = Some(authenticated);
            let mut response = next.run(request).await;
            for header in remarks::warnings(&remarks).filter_map(warning_header) {
                response.headers_mut().append(WARNING, header);
            }
            response
        }
        Err(refused) => {
            tracing::debug!(
                error = refused.aggregate(),
                said = refused.words(),
                "unable to authenticate the request"
            );
            let status = Status::unauthorized();
            let telling = audit.as_ref().and_then(|audit| audit.refused(&request, &request.ctx, &status));
            if let Some(telling) = telling {
                let context = telling.context();
                remarks::annotations(&refused.remarks).for_each(|(key, value)| context.annotate(key, value));
                telling.tell(AuditStage::ResponseStarted, 401).await;
            }
            let mut response = refuse(&mut request, status);
            if authenticators.asks_for_password() {
                let realm = HeaderValue::from_static("Basic realm=\"kubernetes-master\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, realm);
            }
            response.extensions_mut().insert(refused);
            response
        }
    }
}

/// What has been taken out of the headers, with as whom somebody acts, and the certificate.
fn shown(mut before: HeaderMap, request: &ApiRequest) -> ShownCredentials {
    let is_other = |name: &HeaderName| {
        request.headers().contains_key(name) && !name.as_str().starts_with(IMPERSONATION_HEADERS)
    };
    let others: Vec<HeaderName> = before.keys().filter(|name| is_other(name)).cloned().collect();
    for name in others {
        before.remove(name);
    }
    ShownCredentials { headers: before, certificates: request.extensions().get().cloned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authentication::token_file::StaticTokens;
    use crate::authentication::union::Authenticators;
    use apimachinery::user::UserInfo;
    use axum::body::Body;
    use clock::Clock;
    use http_body_util::BodyExt;
    use tower::{ServiceBuilder, ServiceExt};

    use super::super::chain::{Chain, endpoint, from_fn_with_state};
    use super::super::passed::Passed;

    /// What the rest of the chain sees of a request with these headers.
    async fn seen(headers: &[(&str, &str)]) -> (u16, String) {
        let jane = Arc::new(UserInfo::authenticated("jane", &[]));
        let tokens = StaticTokens::new([("t0ken".to_owned(), jane)], &[]);
        let authenticators = Arc::new(Authenticators::in_process(&Clock::real()).knowing(tokens));
        let service = ServiceBuilder::new()
            .layer(from_fn_with_state((authenticators, None), authenticate))
            .service(endpoint(|request: Passed| async move {
                let user = request.ctx.user.name.clone();
                let headers: Vec<&str> = request.headers().keys().map(http::HeaderName::as_str).collect();
                let text = format!("{user} {}", headers.join(" "));
                ApiResponse::new(Body::from(text))
            }));
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = Chain::new(service).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_user_goes_on_and_the_credentials_do_not() {
        let token = ("authorization", "Bearer t0ken");
        assert_eq!(seen(&[token, ("accept", "a")]).await, (200, "jane accept".into()));
        assert_eq!(seen(&[token, ("x-remote-user", "joe")]).await, (200, "jane ".into()));
        assert_eq!(seen(&[("x-remote-extra-a", "b")]).await, (200, "system:anonymous ".into()));
        let (code, text) = seen(&[("authorization", "Bearer wrong")]).await;
        assert_eq!(code, 401);
        assert!(!text.contains("wrong") && !text.contains("invalid"), "{text}");
    }
}
