//! Who the server is when it writes on its own.

use std::sync::Arc;

use crate::request::{RequestContext, RequestInfo};
use apimachinery::user::UserInfo;

/// The identity in which the server itself writes.
pub(super) fn context() -> RequestContext {
    let user = UserInfo::authenticated("system:apiserver", &["system:masters"]);
    RequestContext::new(Arc::new(RequestInfo::default()), Arc::new(user))
}
