//! What was seen of a cluster's users, and what follows from it.
//!
//! Comes in: each request of a user, allowed or not, with its answer's code ([`SeenRequests`], an interceptor
//! of the apiserver's chain). Goes out: the requests of a user, the least role that would have been enough
//! ([`roles`]), what roles allow and nobody used ([`unused`]), and why an object is as it is ([`why`]).
//! Upstream's nearest are audit logs with the tools that read them (audit2rbac), and `kubectl describe`. The
//! cluster's own components are not seen: nobody asks, and there is no end of what they do.

#![warn(missing_docs)]

mod requests;
mod uses;

pub mod roles;
pub mod unused;

pub mod why;

pub use requests::{REMEMBERED, SeenRequest, SeenRequests};
pub use uses::{MAX_USES, RbacUse};
