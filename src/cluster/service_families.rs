//! The address that is listened on and the range of Services are of one family.

use std::net::{Ipv4Addr, SocketAddr};

use super::config::Config;
use super::start_error::StartError;
use apis::networking::service_ranges::ServiceRanges;
use apiserver::server;

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

/// Where others may reach the server that is bound to `bound`: what the Service `kubernetes` leads to.
pub(super) fn advertised(config: &Config, bound: SocketAddr) -> Option<SocketAddr> {
    server::advertised(of_services(&config.apiserver.services.service_cluster_ip_range, bound))
}

/// Behind `::` and `::1` both families may be listened on; an address of the other one than that of Services
/// would be behind none of them.
fn of_services(ranges: &ServiceRanges, bound: SocketAddr) -> SocketAddr {
    let ip = bound.ip();
    let is_either = ip.is_ipv6() && (ip.is_unspecified() || ip.is_loopback());
    if is_either && ranges.primary.network.is_ipv4() {
        return SocketAddr::from((Ipv4Addr::UNSPECIFIED, bound.port()));
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_looked_for_in_the_family_of_services() {
        for (ranges, bound, wanted) in [
            ("fd00::/108,10.96.0.0/16", "[::1]:6443", "[::1]:6443"),
            ("fd00::/108", "[::]:6443", "[::]:6443"),
            ("10.96.0.0/16,fd00::/108", "[::1]:6443", "0.0.0.0:6443"),
            ("10.96.0.0/16", "[::]:6443", "0.0.0.0:6443"),
            ("10.96.0.0/16", "127.0.0.1:6443", "127.0.0.1:6443"),
            ("10.96.0.0/16", "[fd00::1]:6443", "[fd00::1]:6443"),
        ] {
            let found = of_services(&ServiceRanges::parse(ranges).unwrap(), bound.parse().unwrap());
            assert_eq!(found.to_string(), wanted, "{ranges} {bound}");
        }
    }
}
