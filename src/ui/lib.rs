//! The page that shows a cluster at work (`kubarium up --ui`, `kubarium ui`): its files, who may use it, and
//! the way from it to the API. Ours: upstream's nearest are Dashboard and `kubectl proxy --www`.
//!
//! Comes in: the cluster's API as a service, and users who are invited. Goes out: one service for a listener
//! on loopback. What the page asks for goes through the whole handler chain in the name of the user that was
//! invited, who is authorized there as with kubectl. It must not know what a cluster is.
//!
//! Who is let in: a link holds an invitation behind its `#`, which no browser sends to a server or names to
//! another. It works once, for [`INVITATION_LASTS`]; the page exchanges it for the key of a session, keeps
//! that for its tab, and sends it with each request as a bearer token, for [`SESSION_LASTS`]. There is no
//! cookie, so no page of another server, and none that a pod serves through the API's proxy, can act in the
//! user's name.

#![warn(missing_docs, unreachable_pub)]

mod files;
mod guests;
mod lessons;
mod manifests;
mod same_origin;
mod service;
mod sources;
mod visit;

pub use guests::{Guest, Guests, INVITATION_LASTS, MAX_INVITATIONS, MAX_SESSIONS, SESSION_LASTS};
pub use lessons::{Lesson, LessonObject, LessonStep, UnfitManifest, lessons};
pub use service::service;
pub use visit::CHECK_PERIOD;
