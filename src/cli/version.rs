//! `kubarium version`

use super::{Failure, say};

/// Our version and the Kubernetes whose behaviour it has.
pub const LONG: &str = concat!(env!("CARGO_PKG_VERSION"), " (Kubernetes v1.36.2)");

/// Prints it.
pub fn print() -> Result<(), Failure> {
    say(format!("kubarium {LONG}"));
    Ok(())
}
