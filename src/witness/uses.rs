//! `RbacUses`: what each user has asked for at least once, each thing once.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;

use apimachinery::user::UserInfo;
use apiserver::request::RequestInfo;

/// So many different things are remembered, of all users together. A further one is counted and not kept.
pub const MAX_USES: usize = 16_384;

/// Something that somebody has asked for: what a rule of RBAC would have to allow.
#[derive(Clone, Debug)]
pub struct RbacUse {
    /// Who asked first in this way.
    pub user: Arc<UserInfo>,
    /// For what.
    pub info: Arc<RequestInfo>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct RbacUses {
    hasher: RandomState,
    /// By the hash of what makes them different: of 64 bits, seeded, so that two are never taken for one.
    kept: HashMap<u64, RbacUse, RandomState>,
    /// In how many requests something was asked for that is not kept.
    pub(crate) left_out: u64,
}

impl RbacUses {
    pub(crate) fn add(&mut self, user: &Arc<UserInfo>, info: &Arc<RequestInfo>) {
        let key = self.hasher.hash_one(key(user, info));
        if self.kept.contains_key(&key) {
            return;
        }
        if self.kept.len() >= MAX_USES {
            self.left_out += 1;
            return;
        }
        self.kept.insert(key, RbacUse { user: user.clone(), info: info.clone() });
    }

    /// In an order that depends on nothing but what they are.
    pub(crate) fn all(&self) -> Vec<RbacUse> {
        let mut all: Vec<RbacUse> = self.kept.values().cloned().collect();
        all.sort_by(|one, other| key(&one.user, &one.info).cmp(&key(&other.user, &other.info)));
        all
    }
}

type UseKey<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

fn key<'a>(user: &'a UserInfo, info: &'a RequestInfo) -> UseKey<'a> {
    let path = if info.is_resource_request { "" } else { &info.path };
    let RequestInfo { verb, group, resource, subresource, namespace, name, .. } = info;
    (&user.name, group, resource, subresource, namespace, name, verb, path)
}

impl RbacUse {
    /// As in a rule: `pods`, `pods/status`.
    pub fn resource(&self) -> String {
        match self.info.subresource.as_str() {
            "" => self.info.resource.clone(),
            subresource => format!("{}/{subresource}", self.info.resource),
        }
    }

    /// The name that a rule can be about: of a create it is not known when it is asked.
    pub fn object(&self) -> &str {
        let is_nameless = self.info.verb == "create" && self.info.subresource.is_empty();
        if is_nameless { "" } else { &self.info.name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_kept_once_and_not_without_bound() {
        let mut uses = RbacUses::default();
        let user = Arc::new(UserInfo::authenticated("a", &[]));
        let info = |name: usize| {
            let path = format!("/api/v1/namespaces/n/pods/{name}");
            Arc::new(RequestInfo::new(&http::Method::GET, &path, "").unwrap())
        };
        (0..MAX_USES).for_each(|name| uses.add(&user, &info(name)));
        uses.add(&user, &info(0));
        assert_eq!((uses.kept.len(), uses.left_out), (MAX_USES, 0));
        uses.add(&user, &info(MAX_USES));
        assert_eq!((uses.kept.len(), uses.left_out), (MAX_USES, 1));
    }
}
