//! Where `curl` asks from, when it is told to (`--interface`, its `bindlocal`): a device of the container, or
//! one of its addresses.

use std::net::{IpAddr, SocketAddr};

use super::resolver::{AddressFamily, resolve_of};
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::interfaces;

/// curl's `CURLE_INTERFACE_FAILED`.
const INTERFACE_FAILED: i32 = 45;

/// Where a connection would begin.
pub(super) enum CurlSource {
    /// Somewhere from which `to` can be reached.
    There,
    /// At loopback, from which nobody else is.
    Astray,
    /// It is none of the container's.
    Missing(i32, String),
}

/// Where a connection to `to` begins that is to begin at `wanted`: the name of a device, an address or a
/// name, or one of both where `if!` or `host!` stands before it.
pub(super) fn begin_at(
    player: &mut Player<'_>,
    wanted: &str,
    to: SocketAddr,
) -> Result<CurlSource, AfterCommand> {
    let (device, host) = parts(wanted);
    if let Some(device) = device {
        if interfaces::has_device(player, device) {
            return Ok(CurlSource::There);
        }
        if host.is_none() {
            return Ok(missing(format!("Couldn't bind to interface '{device}'")));
        }
    }
    let host = host.unwrap_or_default();
    let family = if to.is_ipv6() { AddressFamily::V6 } else { AddressFamily::V4 };
    let Some(address) = resolve_of(player, host, family)? else {
        return Ok(missing(format!("Couldn't bind to '{host}'")));
    };
    if !is_own(player, address) {
        return Ok(missing("bind failed with errno 99: Address not available".into()));
    }
    let leads_out = !address.is_loopback() || is_own(player, to.ip());
    Ok(if leads_out { CurlSource::There } else { CurlSource::Astray })
}

/// What may be a device of it, and what a host.
fn parts(wanted: &str) -> (Option<&str>, Option<&str>) {
    if let Some(device) = wanted.strip_prefix("if!") {
        return (Some(device), None);
    }
    if let Some(host) = wanted.strip_prefix("host!") {
        return (None, Some(host));
    }
    (Some(wanted), Some(wanted))
}

fn is_own(player: &Player<'_>, address: IpAddr) -> bool {
    address.is_loopback() || interfaces::addresses(player).contains(&address)
}

fn missing(why: String) -> CurlSource {
    CurlSource::Missing(INTERFACE_FAILED, why)
}
