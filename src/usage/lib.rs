//! Numbers as functions of time: what a simulated container uses, and what is measured of an object.
//!
//! Comes in: a text as users write it into annotations, and moments. Goes out: the number at a moment, its
//! sum over a time, and when it first goes over a limit. Nothing is kept and nobody waits: a number is worked
//! out when it is asked for. It must not know what is counted, nor who asks.
//!
//! The texts ([`Curve::parse`]):
//!
//! | text | is |
//! | --- | --- |
//! | `250m`, `64Mi` | always so much |
//! | `40%` | such a share of what it is measured against, as of a container's request |
//! | `ramp 100m 2 5m` | from the first to the second within the time, and so from then on |
//! | `wave 100m 2 10m` | up from the first to the second and down again, in each such time |
//! | `steps 100m, 2 at 5m, 50m at 10m` | another number from each time on |
//! | `requests 20m 5m` | the first, and the second for each request a second that it gets, see [`load`] |
//! | `cel: EXPRESSION` | whatever a CEL expression says, see [`expression`] |
//!
//! Times count from when what is measured began.

#![warn(missing_docs)]

pub mod against;
pub mod curve;
pub mod expression;
pub mod limited;
pub mod load;

mod grammar;

#[cfg(test)]
mod tests;

pub use against::{Against, CurveError};
pub use curve::{Curve, CurveFunction};
pub use load::{AddressLoad, LoadBook};
