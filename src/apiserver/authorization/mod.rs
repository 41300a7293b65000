//! Authorization: may this user do that (`k8s.io/apiserver/pkg/authorization`).
//!
//! In come a user and what the request asks for, out goes a [`Decision`]: of the first authorizer that
//! allows it. None of them denies; what nobody allows is refused. One file per authorizer. What the object
//! says is none of its business: that is admission's.

pub mod path;
pub mod privileged;
pub mod rbac;
pub mod rules;

use std::sync::Arc;

use crate::apimachinery::user::UserInfo;
use crate::apiserver::request::RequestInfo;
use rbac::Rbac;

/// What an authorizer says (`authorizer.Decision`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow(Allowed),
    /// Let others say; with a word on why, where there is one.
    NoOpinion(String),
}

/// Who allowed it and why. In a request's extensions: for those who tell the story of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// As in `--authorization-mode`: `RBAC`.
    pub by: &'static str,
    /// As `ClusterRoleBinding "a" of ClusterRole "b" to User "c"`; nothing where that is all there is to say.
    pub reason: Option<Arc<str>>,
}

/// One source of permissions (`authorizer.Authorizer`). Called for every request: it must not wait.
pub trait Authorizer: Send + Sync {
    /// Whether `user` may do what `info` says.
    fn authorize(&self, user: &UserInfo, info: &RequestInfo) -> Decision;
}

/// All authorizers, in order (upstream's union).
pub struct Authorizers(Vec<Box<dyn Authorizer>>);

impl Authorizers {
    /// The list; its order is the order in which they are asked, and only the cost depends on it.
    pub fn new(rbac: Arc<Rbac>) -> Authorizers {
        Authorizers(vec![
            // Before RBAC, which knows nothing while the cluster starts: somebody must apply the first roles.
            Box::new(privileged::PrivilegedGroups),
            // Before RBAC for the same reason: a probe wants to know whether the server lives.
            Box::new(path::AlwaysAllowPaths),
            Box::new(rbac),
        ])
    }

    /// The first that allows it, or the words of those that do not.
    pub fn authorize(&self, user: &UserInfo, info: &RequestInfo) -> Decision {
        let mut reasons = Vec::new();
        for authorizer in &self.0 {
            match authorizer.authorize(user, info) {
                allowed @ Decision::Allow(_) => return allowed,
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
            }
        }
        Decision::NoOpinion(reasons.join("\n"))
    }
}
