//! `Passed`: a request on its way down the chain, with what the filters found out about it so far.
//!
//! What came with it from outside, from a socket or from a caller in this process, is in its
//! `http::Extensions`. What is found out on the way is here, in fields that say what there is: no filter
//! looks for what an earlier one may have left somewhere.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::request_log::RequestLogSpan;
use crate::authentication::Authenticated;
use crate::authorizer::Allowed;
use crate::request::RequestContext;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiRequest;

/// Stands for the request itself: its headers, body and path are used as those of one.
pub struct Passed {
    /// As it came, without what a filter took out of it.
    pub request: ApiRequest,
    /// What goes on to the endpoint.
    pub ctx: RequestContext,
    /// Its line in the log; none when nobody reads it.
    pub(super) line: Option<RequestLogSpan>,
    /// For those who tell the story of a request.
    pub(super) story: Story,
}

/// Who said what of a request; nobody is to treat it in another way for that.
#[derive(Default)]
pub(super) struct Story {
    /// Who knew its credentials, and what the others said.
    pub authenticated: Option<Authenticated>,
    /// Who acts as somebody else.
    pub impersonator: Option<Impersonator>,
    /// Who allowed it, and why.
    pub allowed: Option<Allowed>,
}

/// Who really sends a request; on the answer of one that is refused, too.
#[derive(Clone, Debug)]
pub struct Impersonator {
    /// Who it is.
    pub user: Arc<UserInfo>,
    /// As whom.
    pub acting: Arc<UserInfo>,
    /// The verb that allowed it.
    pub verb: &'static str,
}

impl Passed {
    /// At the top of the chain.
    pub fn new(request: ApiRequest) -> Passed {
        let ctx = RequestContext::of(&request);
        Passed { request, ctx, line: None, story: Story::default() }
    }
}

impl Deref for Passed {
    type Target = ApiRequest;

    fn deref(&self) -> &ApiRequest {
        &self.request
    }
}

impl DerefMut for Passed {
    fn deref_mut(&mut self) -> &mut ApiRequest {
        &mut self.request
    }
}
