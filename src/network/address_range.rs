//! Ranges of addresses, as `10.244.0.0/16` and `fd00::/8` say them.

use std::net::IpAddr;

/// The addresses that begin with the same bits (`net.IPNet`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    length: u8,
}

impl AddressRange {
    /// Of a text as `10.0.0.0/8`; an address alone is a range of one. Nothing when it is neither.
    pub fn parse(text: &str) -> Option<AddressRange> {
        let Some((address, length)) = text.split_once('/') else {
            return text.parse().ok().map(AddressRange::one);
        };
        let address: IpAddr = address.parse().ok()?;
        let length = length.parse().ok().filter(|length| *length <= bits(address))?;
        Some(AddressRange { network: masked(address, length), length })
    }

    /// One address and no other.
    pub fn one(address: IpAddr) -> AddressRange {
        AddressRange { network: address, length: bits(address) }
    }

    /// Whether an address is in it; none of the other family ever is.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.length) == self.network
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.network
    }

    /// Its last address.
    pub fn last(&self) -> IpAddr {
        match self.network {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                IpAddr::V4((u32::from(address) | rest).into())
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(u32::from(self.length)).unwrap_or(0);
                IpAddr::V6((u128::from(address) | rest).into())
            }
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_that_begin_like_it() {
        for (range, inside, outside) in [
            ("10.244.1.7/24", "10.244.1.255", "10.244.2.0"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("fd00:10::/32", "fd00:10::ffff", "fd00:11::"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let range = AddressRange::parse(range).unwrap();
            assert!(range.contains(inside.parse().unwrap()), "{range:?} {inside}");
            assert!(!range.contains(outside.parse().unwrap()), "{range:?} {outside}");
        }
        for wrong in ["10.0.0.0/33", "::/129", "10.0.0/8", "all", "10.0.0.0/"] {
            assert_eq!(AddressRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_range_ends_somewhere() {
        for (range, last) in [
            ("10.244.1.0/24", "10.244.1.255"),
            ("10.0.0.1/32", "10.0.0.1"),
            ("0.0.0.0/0", "255.255.255.255"),
            ("fd00::/112", "fd00::ffff"),
        ] {
            assert_eq!(AddressRange::parse(range).unwrap().last(), last.parse::<IpAddr>().unwrap());
        }
    }
}
