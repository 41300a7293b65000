//! Authentication: who is asking (`k8s.io/apiserver/pkg/authentication`).
//!
//! In comes a request, out goes a [`UserInfo`] from the first authenticator that knows the credentials, and
//! what each that was asked before had to say. When none knows them the request is refused with 401; a
//! request without any is anonymous, where that is allowed. One file per authenticator; `union` lists them in
//! upstream's order. What a user may do is none of its business.
//!
//! The components of this process (scheduler, controller manager, kubelets) are no strangers: they say who
//! they are in the request's extensions, which nothing on a socket can fill, and carry no credentials.

pub mod config;
pub mod reviews;
pub mod union;

pub mod anonymous;
pub mod in_process;

pub mod basic_auth;
pub mod request_header;
pub mod x509;

pub mod bearer_token;
pub mod token_cache;

pub mod bootstrap_token;
pub mod service_account;
pub mod token_file;

pub mod oidc;
pub mod webhook;

pub mod metrics;

mod csv_file;
mod es512;
pub mod extra;
mod jwt;
mod secrets;

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::apimachinery::user::UserInfo;
use crate::apimachinery::wire::ApiRequest;

pub use config::{Authentication, AuthenticationConfig, ConfigError, Parts};
pub use union::{Authenticated, Authenticators, Refused, Said};

/// One way of proving who one is by what came with the request or its connection
/// (`authenticator.Request`). Called for every request: it does not wait.
pub trait RequestAuthenticator: Send + Sync {
    /// As the flow record calls it.
    fn name(&self) -> &'static str;

    /// The user; nothing when the request has no credentials of this sort.
    ///
    /// # Errors
    /// Credentials of this sort that are wrong; the text is for the log and the flow record.
    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, String>;
}

/// One sort of bearer token (`authenticator.Token`).
pub trait TokenAuthenticator: Send + Sync {
    /// As the flow record calls it.
    fn name(&self) -> &'static str;

    /// Whose token it is; nothing when it is none of this sort. `audiences` are those that the token must be
    /// meant for, at least one of them; none are asked for by an ordinary request, which means the server's
    /// own.
    ///
    /// # Errors
    /// A token of this sort that is wrong.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Response>, String>>;
}

/// Whose token it is, and for whom it is meant (`authenticator.Response`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The user.
    pub user: Arc<UserInfo>,
    /// Those of the audiences asked for that the token is meant for.
    pub audiences: Vec<String>,
}

/// The audiences that a token which names none is meant for (`authenticator.WrapAudienceAgnosticToken`):
/// those of the server, as far as they are asked for. Nothing when none of them is.
pub fn audience_agnostic(own: &[String], asked: Option<&[String]>) -> Option<Vec<String>> {
    let Some(asked) = asked else { return Some(own.to_vec()) };
    let common: Vec<String> = own.iter().filter(|audience| asked.contains(audience)).cloned().collect();
    (!common.is_empty() || own.is_empty()).then_some(common)
}
