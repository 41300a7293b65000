//! Service account tokens: made and believed by the apiserver itself (`pkg/serviceaccount`).
//!
//! A token is a signed JWT. In come keys and a request for a token, out goes the token (`issuer`); in comes
//! a token, out goes the account (`authenticator`, and `legacy` for those that live in Secrets). A token is
//! only as alive as the account, pod, secret or node that it is bound to: those are looked up each time.

pub mod issuer;
pub mod keys;
pub mod metadata;

pub mod authenticator;
pub mod legacy;

mod bound;
mod claims;
mod metrics;

pub use metrics::TokenUses;

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::user::UserInfo;

const PREFIX: &str = "system:serviceaccount:";

/// The user name of an account (`serviceaccount.MakeUsername`).
pub fn username(namespace: &str, name: &str) -> String {
    format!("{PREFIX}{namespace}:{name}")
}

/// Namespace and name of an account's user name (`serviceaccount.SplitUsername`); nothing for other users.
pub fn split_username(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(PREFIX)?.split_once(':')?;
    let is_label = |text: &str| apimachinery::names::dns1123_label(text).is_empty();
    let is_subdomain = |text: &str| apimachinery::names::dns1123_subdomain(text).is_empty();
    (is_label(namespace) && is_subdomain(name)).then_some((namespace, name))
}

/// The groups of an account (`serviceaccount.MakeGroupNames`).
pub fn groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")]
}

/// The account as a user.
fn user(namespace: &str, name: &str, uid: &str, extra: BTreeMap<String, Vec<String>>) -> Arc<UserInfo> {
    let [all, of_namespace] = groups(namespace);
    let user = UserInfo::authenticated(&username(namespace, name), &[&all, &of_namespace]);
    Arc::new(UserInfo { uid: uid.into(), extra, ..user })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_is_split_as_it_was_made() {
        assert_eq!(split_username(&username("ns", "a.b")), Some(("ns", "a.b")));
        for other in
            ["jane", "system:serviceaccount:ns", "system:serviceaccount::a", "system:serviceaccount:n:a:b"]
        {
            assert_eq!(split_username(other), None, "{other}");
        }
    }
}
