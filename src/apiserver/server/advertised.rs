//! Where others find the server (`ResolveBindAddress` of apimachinery's `net`).

use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Where others may reach a server that is bound to `bound`: a loopback address means nothing to them, so
/// the host's own is taken, of that family if the host has one; none where the host has none.
pub fn advertised(bound: SocketAddr) -> Option<SocketAddr> {
    found_with(bound, address_of_host)
}

fn found_with(bound: SocketAddr, of_host: impl Fn(bool) -> Option<IpAddr>) -> Option<SocketAddr> {
    let ip = bound.ip();
    if !ip.is_loopback() && !ip.is_unspecified() {
        return Some(bound);
    }
    // Behind `::` IPv4 is listened on, too; behind `0.0.0.0` no IPv6.
    let own = of_host(ip.is_ipv6()).or_else(|| of_host(false))?;
    Some(SocketAddr::new(own, bound.port()))
}

/// Nothing is sent: the system only says by which address it would.
fn address_of_host(is_v6: bool) -> Option<IpAddr> {
    let (any, elsewhere) = if is_v6 { ("[::]:0", "[2001:db8::1]:9") } else { ("0.0.0.0:0", "192.0.2.1:9") };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(elsewhere).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|own| is_of_all(*own))
}

/// Whether it means the same to everybody.
fn is_of_all(address: IpAddr) -> bool {
    let is_of_link = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_loopback() && !address.is_unspecified() && !is_of_link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_host_is_of_the_family_that_is_listened_on() {
        let found = |bound: &str, of_host: [Option<&str>; 2]| {
            let of_host = |is_v6: bool| of_host[usize::from(is_v6)].map(|text| text.parse().unwrap());
            found_with(bound.parse().unwrap(), of_host).map(|found| found.to_string())
        };
        let (v4, v6) = (Some("10.0.0.7"), Some("fd00::7"));
        for (bound, of_host, wanted) in [
            ("[::1]:6443", [v4, v6], Some("[fd00::7]:6443")),
            ("[::]:6443", [v4, v6], Some("[fd00::7]:6443")),
            ("127.0.0.1:6443", [v4, v6], Some("10.0.0.7:6443")),
            ("0.0.0.0:6443", [v4, v6], Some("10.0.0.7:6443")),
            ("[::1]:6443", [v4, None], Some("10.0.0.7:6443")),
            ("127.0.0.1:6443", [None, v6], None),
            ("[::1]:6443", [None, None], None),
            ("[fd00::1]:6443", [v4, None], Some("[fd00::1]:6443")),
        ] {
            assert_eq!(found(bound, of_host).as_deref(), wanted, "{bound} {of_host:?}");
        }
    }

    #[test]
    fn an_address_of_a_link_is_nobody_elses() {
        for (address, is_of_all) in [("fe80::1", false), ("169.254.0.1", false), ("fd00::1", true)] {
            assert_eq!(super::is_of_all(address.parse().unwrap()), is_of_all, "{address}");
        }
    }
}
