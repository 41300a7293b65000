//! Whether the address that is listened on and the range of Services are of one family.

use super::config::Config;
use super::start_error::StartError;

/// `validatePublicIPServiceClusterIPRangeIPFamilies`
pub(super) fn check_families(config: &Config) -> Result<(), StartError> {
    let (Some(listen), range) = (config.listen, config.apiserver.services.service_cluster_ip_range.primary)
    else {
        return Ok(());
    };
    let address = listen.address.ip();
    // Behind `::` and `::1` the public address is the host's, of either family.
    let is_either = address.is_ipv6() && (address.is_unspecified() || address.is_loopback());
    if is_either || address.is_ipv4() == range.network.is_ipv4() {
        return Ok(());
    }
    Err(StartError::ServiceFamily(range.to_string(), address.to_string()))
}
