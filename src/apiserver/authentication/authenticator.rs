//! What an authenticator is (`k8s.io/apiserver/pkg/authentication/authenticator`).

use std::sync::Arc;

use futures::future::BoxFuture;

use super::errors::BadCredential;
use super::remarks::Remarks;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiRequest;

/// One way of proving who one is by what came with the request or its connection
/// (`authenticator.Request`). Called for every request: it does not wait.
pub trait RequestAuthenticator: Send + Sync {
    /// As the flow record calls it.
    fn name(&self) -> &'static str;

    /// The user; nothing when the request has no credentials of this sort.
    ///
    /// # Errors
    /// Credentials of this sort that are wrong; the text is for the log and the flow record.
    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, BadCredential>;
}

/// One sort of bearer token (`authenticator.Token`).
pub trait TokenAuthenticator: Send + Sync {
    /// As the flow record calls it.
    fn name(&self) -> &'static str;

    /// Whose token it is; nothing when it is none of this sort. `audiences` are those that the token must be
    /// meant for, at least one of them; none are asked for by an ordinary request, which means the server's
    /// own. What is to be told of the use of such a token goes to `remarks`.
    ///
    /// # Errors
    /// A token of this sort that is wrong.
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
        remarks: &'a Remarks,
    ) -> BoxFuture<'a, Result<Option<Response>, BadCredential>>;
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
