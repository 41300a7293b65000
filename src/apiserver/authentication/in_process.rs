//! Components of this process say who they are in the request's extensions, which nothing on a socket can
//! fill.

use std::sync::Arc;

use super::RequestAuthenticator;
use super::errors::BadCredential;
use apimachinery::user::UserInfo;
use apimachinery::wire::{ApiRequest, InProcessUser};

/// Takes an [`InProcessUser`] as it is.
pub struct InProcess;

impl RequestAuthenticator for InProcess {
    fn name(&self) -> &'static str {
        "InProcess"
    }

    fn authenticate(&self, request: &ApiRequest) -> Result<Option<Arc<UserInfo>>, BadCredential> {
        Ok(request.extensions().get::<InProcessUser>().map(|user| user.0.clone()))
    }
}
