//! AlwaysAllow and AlwaysDeny (`authorizerfactory`): for clusters that are for trying something out.

use crate::authorizer::{Answer, Authorizer, Decision, Rules};
use crate::request::RequestInfo;
use apimachinery::user::UserInfo;
use apis::rbac::policy_rule::PolicyRule;

/// Everybody may do everything.
pub(super) struct AlwaysAllow;

/// Nobody may do anything; others may still allow it.
pub(super) struct AlwaysDeny;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _user: &'a UserInfo, _info: &'a RequestInfo) -> Answer<'a> {
        Answer::Now(Decision::allowed_by("AlwaysAllow"))
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> Rules {
        Rules { rules: PolicyRule::everything(), ..Rules::default() }
    }
}

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _user: &'a UserInfo, _info: &'a RequestInfo) -> Answer<'a> {
        Answer::Now(Decision::NoOpinion("Everything is forbidden.".into()))
    }

    fn rules_for(&self, _user: &UserInfo, _namespace: &str) -> Rules {
        Rules::default()
    }
}
