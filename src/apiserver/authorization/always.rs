//! AlwaysAllow and AlwaysDeny (`authorizerfactory`): for clusters that are for trying something out.

use crate::authorizer::{Authorizer, AuthorizerReply, Decision, UserRules};
use crate::request::RequestInfo;
use apimachinery::user::UserInfo;
use apis::rbac::policy_rule::PolicyRule;

/// Everybody may do everything.
pub(super) struct AlwaysAllow;

/// Nobody may do anything; others may still allow it.
pub(super) struct AlwaysDenyAuthorizer;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _user: &'a UserInfo, _info: &'a RequestInfo) -> AuthorizerReply<'a> {
        AuthorizerReply::Now(Decision::allowed_by("AlwaysAllow"))
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        UserRules { rules: PolicyRule::everything(), ..UserRules::default() }
    }
}

impl Authorizer for AlwaysDenyAuthorizer {
    fn authorize<'a>(&'a self, _user: &'a UserInfo, _info: &'a RequestInfo) -> AuthorizerReply<'a> {
        AuthorizerReply::Now(Decision::NoOpinion("Everything is forbidden.".into()))
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> UserRules {
        UserRules::default()
    }
}
