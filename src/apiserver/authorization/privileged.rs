//! system:masters may do everything (`authorizerfactory.NewPrivilegedGroups`).

use crate::authorizer::{Authorizer, AuthorizerReply, Decision, UserRules};
use crate::request::RequestInfo;
use apimachinery::user::{MASTERS, UserInfo};

/// Allows whatever a member of `system:masters` asks.
pub(super) struct PrivilegedGroups;

impl Authorizer for PrivilegedGroups {
    fn authorize<'a>(&'a self, user: &'a UserInfo, _info: &'a RequestInfo) -> AuthorizerReply<'a> {
        AuthorizerReply::Now(if user.is_member_of(MASTERS) {
            Decision::allowed_by(MASTERS)
        } else {
            Decision::SILENT
        })
    }

    /// Nothing: RBAC's role `cluster-admin` says it.
    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        UserRules::default()
    }
}
