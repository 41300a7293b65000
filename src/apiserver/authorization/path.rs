//! Paths that everybody may read, whoever they are (`--authorization-always-allow-paths`, upstream's
//! default).

use super::{Allowed, Authorizer, Decision};
use crate::apimachinery::user::UserInfo;
use crate::apiserver::request::RequestInfo;

const ALWAYS_ALLOWED: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Allows the probes.
pub struct AlwaysAllowPaths;

impl Authorizer for AlwaysAllowPaths {
    fn authorize(&self, _user: &UserInfo, info: &RequestInfo) -> Decision {
        match !info.is_resource_request && ALWAYS_ALLOWED.contains(&info.path.as_str()) {
            true => Decision::Allow(Allowed { by: "AlwaysAllowPaths", reason: None }),
            false => Decision::NoOpinion(String::new()),
        }
    }
}
