//! Bearer tokens that do not change (`--token-auth-file`, `token/tokenfile`).

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::csv_file::Row;
use super::errors::BadCredential;
use super::remarks::Remarks;
use super::secrets::Digested;
use super::{Response, TokenAuthenticator, audience_agnostic};
use apimachinery::user::UserInfo;

/// The tokens and whose they are.
pub struct StaticTokens {
    /// Of a token that stands twice the last one counts.
    tokens: Vec<(Digested, Arc<UserInfo>)>,
    audiences: Vec<String>,
}

impl StaticTokens {
    /// From pairs of token and user; the users carry `system:authenticated`.
    pub fn new(tokens: impl IntoIterator<Item = Row>, audiences: &[String]) -> StaticTokens {
        let digested = tokens.into_iter().map(|(token, user)| (Digested::of(&token), user));
        StaticTokens { tokens: digested.collect(), audiences: audiences.to_vec() }
    }

    fn find(&self, token: &str) -> Option<Arc<UserInfo>> {
        let token = Digested::of(token);
        let mut found = None;
        for (_, user) in self.tokens.iter().filter(|(known, _)| known.is(&token)) {
            found = Some(user.clone());
        }
        found
    }
}

impl TokenAuthenticator for StaticTokens {
    fn name(&self) -> &'static str {
        "TokenFile"
    }

    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
        _remarks: &'a Remarks,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>> {
        let audiences = audience_agnostic(&self.audiences, audiences);
        let response = audiences.and_then(|audiences| Some(Response { user: self.find(token)?, audiences }));
        std::future::ready(Ok(response)).boxed()
    }
}
