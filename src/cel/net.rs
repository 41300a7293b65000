//! Addresses and networks as Go reads and writes them (`net/netip`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use golang::go_text::quote;

golang::text_error! {
    /// What is no address of a machine or of a network; in Go's words.
    pub(super) struct BadAddress;
}

/// A network: an address and how many bits of it count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// As it was written, with the bits that do not count.
    pub address: IpAddr,
    /// How many bits count.
    pub bits: u8,
}

/// `parseIPAddr`: an address without a zone, and no IPv4 within IPv6.
pub(super) fn parse_ip(text: &str) -> Result<IpAddr, BadAddress> {
    let (address, zone) = parse_address(text).map_err(|error| {
        format!("IP Address {} parse error during conversion from string: {error}", quote(text))
    })?;
    if zone {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)).into());
    }
    check_unmapped(address, text)?;
    Ok(address)
}

fn check_unmapped(address: IpAddr, text: &str) -> Result<(), BadAddress> {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)).into())
        }
        _ => Ok(()),
    }
}

/// `parseCIDR`
pub(super) fn parse_cidr(text: &str) -> Result<Cidr, BadAddress> {
    let wrong = |error: String| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {error}",
            quote(text)
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'".to_owned()))?;
    let (address, zone) = parse_address(address).map_err(|why| wrong(why.into()))?;
    if zone {
        return Err(wrong("IPv6 zones cannot be present in a prefix".to_owned()).into());
    }
    let is_plain =
        bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits.len() < 2 || !bits.starts_with('0'));
    let found = bits.parse::<u64>().ok().filter(|_| is_plain);
    let found = found.ok_or_else(|| wrong(format!("bad bits after slash: {}", quote(bits))))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(found).ok().filter(|bits| *bits <= most);
    let bits = bits.ok_or_else(|| wrong("prefix length out of range".to_owned()))?;
    check_unmapped(address, text)?;
    Ok(Cidr { address, bits })
}

impl Cidr {
    /// `Prefix.Contains`
    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && mask(self.address, self.bits) == mask(address, self.bits)
    }

    /// Whether all of the other lies in it.
    pub(super) fn covers(self, other: Cidr) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }

    /// `Prefix.Masked`
    pub(super) fn masked(self) -> Cidr {
        Cidr { address: mask(self.address, self.bits), bits: self.bits }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The address without the bits behind the first so many.
fn mask(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

/// `Addr.IsLinkLocalMulticast`
pub(super) fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

/// `Addr.IsLinkLocalUnicast`
pub(super) fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// `Addr.IsGlobalUnicast`: private addresses are, too.
pub(super) fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_unspecified()
        || is_broadcast
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}

/// `netip.ParseAddr`; also whether there is a zone.
pub(super) fn parse_address(text: &str) -> Result<(IpAddr, bool), BadAddress> {
    let wrong = |(message, at): Wrong<'_>| -> BadAddress {
        match at {
            "" => format!("ParseAddr({}): {message}", quote(text)).into(),
            at => format!("ParseAddr({}): {message} (at {})", quote(text), quote(at)).into(),
        }
    };
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_v4(text).map(|octets| (IpAddr::V4(octets.into()), false)).map_err(wrong),
        Some(b':') => parse_v6(text).map_err(wrong),
        Some(_) => Err(wrong(("missing IPv6 address", ""))),
        None => Err(wrong(("unable to parse IP", ""))),
    }
}

/// What is wrong, and where.
type Wrong<'t> = (&'static str, &'t str);

fn parse_v4(text: &str) -> Result<[u8; 4], Wrong<'_>> {
    let mut octets = [0; 4];
    let mut place = 0;
    let mut value = 0_u32;
    let mut digits = 0;
    for (at, byte) in text.bytes().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => {
                return Err(("IPv4 field has octet with leading zero", ""));
            }
            b'0'..=b'9' => {
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                octets[place] = u8::try_from(value).map_err(|_| ("IPv4 field has value >255", ""))?;
            }
            b'.' if digits == 0 || at + 1 == text.len() => {
                return Err(("IPv4 field must have at least one digit", rest));
            }
            b'.' if place == 3 => return Err(("IPv4 address too long", "")),
            b'.' => {
                place += 1;
                value = 0;
                digits = 0;
            }
            _ => return Err(("unexpected character", rest)),
        }
    }
    if place < 3 { Err(("IPv4 address too short", "")) } else { Ok(octets) }
}

fn parse_v6(text: &str) -> Result<(IpAddr, bool), Wrong<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut gap = None;
    let mut rest = address;
    if let Some(behind) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = behind;
    }
    while !rest.is_empty() && groups.len() < 8 {
        rest = parse_group(rest, &mut groups, &mut gap)?;
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match gap {
        None if groups.len() < 8 => return Err(("address string too short", "")),
        Some(_) if groups.len() == 8 => {
            return Err(("the :: must expand to at least one field of zeros", ""));
        }
        Some(at) => {
            let missing = 8 - groups.len();
            groups.splice(at..at, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let groups: [u16; 8] = groups.try_into().expect("they are eight");
    Ok((IpAddr::V6(groups.into()), zone))
}

/// One group and the colon behind it, or an address of IPv4 at the end; gives what follows.
fn parse_group<'t>(
    rest: &'t str,
    groups: &mut Vec<u16>,
    gap: &mut Option<usize>,
) -> Result<&'t str, Wrong<'t>> {
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    if digits > 4 {
        return Err(("each group must have 4 or less digits", rest));
    }
    if digits == 0 {
        return Err(("each colon-separated field must have at least one digit", rest));
    }
    if rest.as_bytes().get(digits) == Some(&b'.') {
        if gap.is_none() && groups.len() != 6 {
            return Err(("embedded IPv4 address must replace the final 2 fields of the address", rest));
        }
        if groups.len() > 6 {
            return Err(("too many hex fields to fit an embedded IPv4 at the end of the address", rest));
        }
        let [a, b, c, d] = parse_v4(rest)?;
        groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
        return Ok("");
    }
    groups.push(u16::from_str_radix(&rest[..digits], 16).unwrap_or_default());
    let behind = &rest[digits..];
    if behind.is_empty() {
        return Ok(behind);
    }
    let Some(next) = behind.strip_prefix(':') else {
        return Err(("unexpected character, want colon", behind));
    };
    if next.is_empty() {
        return Err(("colon must be followed by more characters", behind));
    }
    let Some(next) = next.strip_prefix(':') else { return Ok(next) };
    if gap.replace(groups.len()).is_some() {
        return Err(("multiple :: in address", &behind[1..]));
    }
    Ok(next)
}
