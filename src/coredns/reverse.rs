//! Names of addresses: `7.0.96.10.in-addr.arpa` and nibbles below `ip6.arpa` (`plugin/pkg/dnsutil`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that such a name asks for; nothing when it is another name.
pub(crate) fn address(name: &str) -> Option<IpAddr> {
    if let Some(reversed) = name.strip_suffix(".in-addr.arpa") {
        let octets: Vec<u8> = reversed.rsplit('.').map(|octet| octet.parse().ok()).collect::<Option<_>>()?;
        return Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into());
    }
    let reversed = name.strip_suffix(".ip6.arpa")?;
    let nibbles: Vec<u8> = reversed.rsplit('.').map(nibble).collect::<Option<_>>()?;
    if nibbles.len() != 32 {
        return None;
    }
    let number = nibbles.iter().fold(0_u128, |number, nibble| number << 4 | u128::from(*nibble));
    Some(Ipv6Addr::from(number).into())
}

fn nibble(text: &str) -> Option<u8> {
    u8::from_str_radix(text, 16).ok().filter(|nibble| text.len() == 1 && *nibble < 16)
}
