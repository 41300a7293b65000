//! system:masters may do everything (`authorizerfactory.NewPrivilegedGroups`).

use super::{Allowed, Authorizer, Decision};
use crate::apimachinery::user::UserInfo;
use crate::apiserver::request::RequestInfo;

/// Allows whatever a member of `system:masters` asks.
pub struct PrivilegedGroups;

impl Authorizer for PrivilegedGroups {
    fn authorize(&self, user: &UserInfo, _info: &RequestInfo) -> Decision {
        match user.is_member_of("system:masters") {
            true => Decision::Allow(Allowed { by: "system:masters", reason: None }),
            false => Decision::NoOpinion(String::new()),
        }
    }
}
