//! Faults on purpose: what a real cluster does to its clients once in a while, done when a test wants it.
//!
//! Comes in: a [`Fault`], by Rust, HTTP, the command line or an object. Goes out: requests that are refused,
//! late, cut or answered from the past, watches that end, components that stand still. [`Faults`] is an
//! interceptor of the apiserver's chain behind authorization, where user and request are known. Upstream has
//! nothing like it; its nearest is what chaos-mesh and toxiproxy do from outside, which cannot tell a watch
//! from a write. Must not know: who serves requests, or what components are.
//!
//! The first fault that hits a request decides what becomes of it, in the order in which they were added; one
//! that matches but does not hit (its probability, its `nth`, its time) leaves it to the next. Watches that
//! are open when a fault begins that ends watches are requests to it, too, in the order in which they were
//! opened: `count: 1` ends the oldest. Requests to the test kit itself, below `/kubarium/`, are never hit.
//! Bound: [`MAX_FAULTS`] at once.

#![warn(missing_docs)]

mod contradiction;
mod fault;
mod network_fault;
mod pattern;
mod span;

mod aim;

mod check;

mod asked;
mod body;
mod events;
mod expired;
mod hold;
mod late;
mod named;
mod open;
mod status;

mod intercept;
mod rules;
mod switch;

mod schedule;

pub use contradiction::Contradiction;
pub use fault::{Fault, FaultAnswer, FaultCut, StaleReads, WatchEnd, WatchFault};
pub use network_fault::{NetworkFault, NetworkSide};
pub use rules::{FaultRefusal, FaultStatus, Faults, MAX_FAULTS};
pub use schedule::{Schedule, Shrinking};
pub use span::Span;
pub use switch::ComponentSwitch;
