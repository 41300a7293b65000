//! Messages of DNS (RFC 1035), as far as programs ask and read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// So many names may a compressed name lead on to.
const MAX_POINTERS: usize = 16;

/// Types of records by their names.
const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
];

/// Bits of a header by their names.
const FLAGS: &[(&str, u16)] =
    &[("qr", 0x8000), ("aa", 0x0400), ("tc", 0x0200), ("rd", 0x0100), ("ra", 0x0080), ("ad", 0x0020)];

/// The number of a type of records.
pub(crate) fn type_of(name: &str) -> Option<u16> {
    TYPES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}

/// A record of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DnsAnswerRecord {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) ttl: u32,
    /// As `dig` writes it.
    pub(crate) data: String,
}

/// What a server says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DnsAnswer {
    pub(crate) id: u16,
    /// 0 is well, 2 SERVFAIL, 3 NXDOMAIN.
    pub(crate) code: u8,
    /// There is more than fitted.
    pub(crate) is_truncated: bool,
    pub(crate) records: Vec<DnsAnswerRecord>,
    /// Who is responsible.
    pub(crate) authorities: Vec<DnsAnswerRecord>,
    /// What will be asked next.
    pub(crate) additional: Vec<DnsAnswerRecord>,
    /// Bits of the header.
    header: u16,
    /// How long it was.
    pub(crate) bytes: usize,
}

impl DnsAnswer {
    /// The addresses in it.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let addresses = self.records.iter().filter(|record| matches!(record.kind, "A" | "AAAA"));
        addresses.filter_map(|record| record.data.parse().ok()).collect()
    }

    /// The bits that its header has, as `dig` writes them.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        FLAGS.iter().filter(|(_, bit)| self.header & bit != 0).map(|(name, _)| *name)
    }

    /// Its code as `dig` writes it.
    pub(crate) fn status(&self) -> &'static str {
        match self.code {
            0 => "NOERROR",
            1 => "FORMERR",
            2 => "SERVFAIL",
            3 => "NXDOMAIN",
            5 => "REFUSED",
            _ => "NOTIMP",
        }
    }
}

/// A question, recursion desired; nothing for what is no name.
pub(crate) fn query(id: u16, name: &str, kind: u16) -> Option<Vec<u8>> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend([0, 1]);
    (message.len() <= 12 + 255 + 4).then_some(message)
}

/// Reads an answer; nothing for what is none.
pub(crate) fn read(message: &[u8]) -> Option<DnsAnswer> {
    let mut reader = DnsReader { message, at: 0 };
    let (id, flags) = (reader.number()?, reader.number()?);
    let (questions, answers) = (reader.number()?, reader.number()?);
    let (authorities, additional) = (reader.number()?, reader.number()?);
    for _ in 0..questions {
        reader.name()?;
        reader.at += 4;
    }
    let records = reader.records(answers)?;
    // What is not whole behind the answers takes nothing from them.
    let authorities = reader.records(authorities).unwrap_or_default();
    let additional = reader.records(additional).unwrap_or_default();
    let code = u8::try_from(flags & 15).unwrap_or_default();
    let is_truncated = flags & 0x0200 != 0;
    let bytes = message.len();
    Some(DnsAnswer { id, code, is_truncated, records, authorities, additional, header: flags, bytes })
}

struct DnsReader<'a> {
    message: &'a [u8],
    at: usize,
}

impl DnsReader<'_> {
    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let bytes = self.message.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.bytes(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn name(&mut self) -> Option<String> {
        let mut labels = Vec::new();
        let mut at = self.at;
        let mut pointers = 0;
        loop {
            let length = usize::from(*self.message.get(at)?);
            if length >= 0xc0 {
                let low = usize::from(*self.message.get(at + 1)?);
                if pointers == 0 {
                    self.at = at + 2;
                }
                pointers += 1;
                (pointers <= MAX_POINTERS).then_some(())?;
                at = (length & 0x3f) << 8 | low;
                continue;
            }
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(self.message.get(at..at + length)?).into_owned());
            at += length;
        }
        if pointers == 0 {
            self.at = at;
        }
        Some(labels.join("."))
    }

    /// So many records; those of types that are not known are left out.
    fn records(&mut self, count: u16) -> Option<Vec<DnsAnswerRecord>> {
        let records: Option<Vec<Option<DnsAnswerRecord>>> = (0..count).map(|_| self.record()).collect();
        Some(records?.into_iter().flatten().collect())
    }

    /// Nothing in it for a type that is not known.
    fn record(&mut self) -> Option<Option<DnsAnswerRecord>> {
        let name = self.name()?;
        let number = self.number()?;
        self.at += 2;
        let ttl = u32::from(self.number()?) << 16 | u32::from(self.number()?);
        let length = usize::from(self.number()?);
        let end = self.at.checked_add(length).filter(|end| *end <= self.message.len())?;
        let kind = TYPES.iter().find(|(_, own)| *own == number).map(|(name, _)| *name);
        let data = kind.and_then(|kind| self.data(kind, length));
        self.at = end;
        Some(kind.zip(data).map(|(kind, data)| DnsAnswerRecord { name, kind, ttl, data }))
    }

    fn data(&mut self, kind: &str, length: usize) -> Option<String> {
        Some(match kind {
            "A" => Ipv4Addr::from(<[u8; 4]>::try_from(self.bytes(4)?).ok()?).to_string(),
            "AAAA" => Ipv6Addr::from(<[u8; 16]>::try_from(self.bytes(16)?).ok()?).to_string(),
            "SRV" => format!("{} {} {} {}.", self.number()?, self.number()?, self.number()?, self.name()?),
            "MX" => format!("{} {}.", self.number()?, self.name()?),
            "TXT" => format!("{:?}", String::from_utf8_lossy(self.bytes(length)?.get(1..)?)),
            "SOA" => {
                let mut text = format!("{}. {}.", self.name()?, self.name()?);
                for _ in 0..5 {
                    let number = u32::from(self.number()?) << 16 | u32::from(self.number()?);
                    text.push_str(&format!(" {number}"));
                }
                text
            }
            _ => format!("{}.", self.name()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_their_compressed_names() {
        let asked = query(7, "web.default", 1).unwrap();
        assert_eq!(&asked[12..], b"\x03web\x07default\x00\x00\x01\x00\x01");
        let mut message = asked.clone();
        (message[2], message[7]) = (0x81, 2);
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\x60\x00\x01");
        message.extend(b"\xc0\x0c\x00\x21\x00\x01\x00\x00\x00\x05\x00\x09\x00\x00\x00\x64\x00\x50\x01a\x00");
        let answer = read(&message).unwrap();
        assert_eq!((answer.id, answer.status()), (7, "NOERROR"));
        assert_eq!(answer.addresses(), [IpAddr::from([10, 96, 0, 1])]);
        assert_eq!((answer.records[1].kind, &*answer.records[1].data), ("SRV", "0 100 80 a."));
        assert_eq!(answer.records[0].name, "web.default");
    }

    #[test]
    fn what_is_no_message_or_leads_in_circles_is_none() {
        let mut circle = query(1, "a", 1).unwrap();
        circle[12] = 0xc0;
        circle[13] = 12;
        for message in [&b""[..], b"\x00\x01\x81", &circle] {
            assert_eq!(read(message), None);
        }
        assert!(query(1, "a..b", 1).is_none() && query(1, &"a".repeat(64), 1).is_none());
        assert!(query(1, &"abc.".repeat(70), 1).is_none());
    }
}
