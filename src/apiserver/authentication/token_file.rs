//! Bearer tokens that do not change (`--token-auth-file`).

use std::collections::HashMap;
use std::sync::Arc;

use super::Authenticator;
use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::ApiRequest;

/// The tokens and whose they are.
#[derive(Default)]
pub struct StaticTokens(HashMap<String, Arc<UserInfo>>);

impl StaticTokens {
    /// From pairs of token and user; the user should carry `system:authenticated`.
    pub fn new(tokens: impl IntoIterator<Item = (String, Arc<UserInfo>)>) -> StaticTokens {
        StaticTokens(tokens.into_iter().collect())
    }
}

impl Authenticator for StaticTokens {
    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, String> {
        let Some(token) = bearer_token(request) else { return Ok(None) };
        self.0.get(token).cloned().map(Some).ok_or_else(|| "invalid bearer token".into())
    }
}

/// The token of an `Authorization: Bearer` header.
pub fn bearer_token(request: &ApiRequest) -> Option<&str> {
    let header = request.headers().get(http::header::AUTHORIZATION)?.to_str().ok()?;
    let mut parts = header.trim().split(' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}
