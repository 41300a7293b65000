//! Where a cluster listens: whether it may.

use super::config::{Config, Listen};
use super::service_families::check_families;
use super::start_error::StartError;

/// Where it can be reached from outside of this machine, if it can. An address at which it must not listen is
/// refused, and one that its Services do not fit.
pub(super) fn check(config: &Config) -> Result<Option<Listen>, StartError> {
    let exposed = exposed(config)?;
    check_families(config)?;
    Ok(exposed)
}

/// Where it can be reached from outside of this machine, if it can: never without TLS.
fn exposed(config: &Config) -> Result<Option<Listen>, StartError> {
    let exposed = config.listen.filter(|listen| !listen.address.ip().is_loopback());
    match exposed {
        Some(Listen { address, tls: false }) => Err(StartError::Exposed(address)),
        exposed => Ok(exposed),
    }
}
