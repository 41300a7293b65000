//! Messages of DNS (RFC 1035), as far as a cluster speaks it: questions and records of a few types. When
//! written, whose a record is is shortened by what the question says already (compression, 4.1.4).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::{BufMut, Bytes, BytesMut};

/// The largest message over UDP to somebody who has not said that he takes larger ones.
pub const MAX_PLAIN_BYTES: usize = 512;
/// The largest message over UDP at all (CoreDNS' `bufsize`).
pub const MAX_UDP_BYTES: usize = 1_232;
/// The largest message over TCP, whose length is said in two bytes.
pub const MAX_TCP_BYTES: usize = 65_535;
/// Where the name of a question begins: behind the header.
const QUESTION_AT: usize = 12;
/// The flag of a message that did not fit (`TC`).
const TRUNCATED: u16 = 0x0200;
/// So many bytes says how large an answer may be (EDNS without options).
const OPT_BYTES: usize = 11;
/// So many labels and pointers are followed in one name; one with more is broken.
const MAX_STEPS: usize = 128;
/// The longest name.
const MAX_NAME_BYTES: usize = 253;
const CLASS_IN: u16 = 1;

/// What is asked for, and what is answered (`QTYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordType(pub u16);

impl RecordType {
    /// An IPv4 address.
    pub const A: RecordType = RecordType(1);
    /// Another name.
    pub const CNAME: RecordType = RecordType(5);
    /// Who is responsible for a zone.
    pub const SOA: RecordType = RecordType(6);
    /// The name of an address.
    pub const PTR: RecordType = RecordType(12);
    /// A text.
    pub const TXT: RecordType = RecordType(16);
    /// An IPv6 address.
    pub const AAAA: RecordType = RecordType(28);
    /// Where a port of a service is.
    pub const SRV: RecordType = RecordType(33);
    const OPT: RecordType = RecordType(41);
}

/// How a question went (`RCODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseCode(pub u8);

impl ResponseCode {
    /// The name is there, whether or not it has what was asked for.
    pub const NO_ERROR: ResponseCode = ResponseCode(0);
    /// The message cannot be read.
    pub const FORMAT_ERROR: ResponseCode = ResponseCode(1);
    /// Whoever knows cannot be asked.
    pub const SERVER_FAILURE: ResponseCode = ResponseCode(2);
    /// There is no such name.
    pub const NO_NAME: ResponseCode = ResponseCode(3);
    /// That is not what this server does.
    pub const NOT_IMPLEMENTED: ResponseCode = ResponseCode(4);
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuestion {
    /// The name as it was written, without the last dot.
    pub name: String,
    /// What of it.
    pub kind: RecordType,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordData {
    /// `A`
    V4(Ipv4Addr),
    /// `AAAA`
    V6(Ipv6Addr),
    /// `CNAME`
    Alias(String),
    /// `PTR`
    Name(String),
    /// `SRV`: priority, weight, port and the name of the host.
    Place(u16, u16, u16, String),
    /// `TXT`
    Text(String),
    /// `SOA`: the server, the mailbox, and serial, refresh, retry, expire and minimum.
    Zone(String, String, [u32; 5]),
    /// Of another type.
    Other(RecordType, Bytes),
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsRecord {
    /// Whose it is.
    pub name: String,
    /// For how many seconds it holds.
    pub ttl: u32,
    /// What it says.
    pub data: RecordData,
}

/// A question, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsMessage {
    /// Joins the answer to its question.
    pub id: u16,
    /// It is an answer.
    pub is_answer: bool,
    /// Who answers is responsible for the zone.
    pub is_authoritative: bool,
    /// It did not fit.
    pub is_truncated: bool,
    /// Who asks wants the answer and no pointers to it.
    pub is_recursive: bool,
    /// How it went.
    pub outcome: ResponseCode,
    /// What was asked.
    pub question: Option<DnsQuestion>,
    /// What is answered.
    pub answers: Vec<DnsRecord>,
    /// Who is responsible.
    pub authorities: Vec<DnsRecord>,
    /// What will be asked next.
    pub additional: Vec<DnsRecord>,
    /// How large an answer whoever asks takes over UDP, when he says so (EDNS).
    pub udp_bytes: Option<u16>,
}

impl DnsMessage {
    /// A question.
    pub fn ask(id: u16, name: &str, kind: RecordType) -> DnsMessage {
        let question = DnsQuestion { name: name.trim_end_matches('.').to_owned(), kind };
        DnsMessage {
            id,
            is_answer: false,
            is_authoritative: false,
            is_truncated: false,
            is_recursive: true,
            outcome: ResponseCode::NO_ERROR,
            question: Some(question),
            answers: vec![],
            authorities: vec![],
            additional: vec![],
            udp_bytes: None,
        }
    }

    /// An answer to it that says nothing yet.
    pub fn answer(&self, outcome: ResponseCode) -> DnsMessage {
        let empty = DnsMessage::ask(self.id, "", RecordType::A);
        let (question, is_recursive) = (self.question.clone(), self.is_recursive);
        DnsMessage { is_answer: true, outcome, question, is_recursive, udp_bytes: self.udp_bytes, ..empty }
    }

    /// Reads one; nothing when it is none.
    pub fn read(bytes: &[u8]) -> Option<DnsMessage> {
        let mut reader = MessageReader { bytes, at: 0 };
        let (id, flags) = (reader.u16()?, reader.u16()?);
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = reader.u16()?;
        }
        let mut question = None;
        for _ in 0..counts[0] {
            let name = reader.name()?;
            let kind = RecordType(reader.u16()?);
            reader.u16()?;
            question = question.or(Some(DnsQuestion { name, kind }));
        }
        let mut udp_bytes = None;
        let answers = reader.records(counts[1], &mut udp_bytes)?;
        let authorities = reader.records(counts[2], &mut udp_bytes)?;
        let additional = reader.records(counts[3], &mut udp_bytes)?;
        Some(DnsMessage {
            id,
            is_answer: flags & 0x8000 != 0,
            is_authoritative: flags & 0x0400 != 0,
            is_truncated: flags & TRUNCATED != 0,
            is_recursive: flags & 0x0100 != 0,
            outcome: ResponseCode((flags & 15) as u8),
            question,
            answers,
            authorities,
            additional,
            udp_bytes,
        })
    }

    /// As it is sent over TCP, without its length. What is beyond [`MAX_TCP_BYTES`] is left out, and that is
    /// said.
    pub fn write(&self) -> Bytes {
        self.write_within(MAX_TCP_BYTES)
    }

    /// Whole records, as many as fit, in their order.
    fn write_within(&self, most: usize) -> Bytes {
        let mut out = self.header();
        let name = self.question.as_ref().map_or("", |question| &question.name);
        let most = most - if self.udp_bytes.is_some() { OPT_BYTES } else { 0 };
        let mut counts = [0, 0, u16::from(self.udp_bytes.is_some())];
        let lists = [&self.answers, &self.authorities, &self.additional];
        let records =
            lists.into_iter().enumerate().flat_map(|(at, list)| list.iter().map(move |it| (at, it)));
        for (list, record) in records {
            let end = out.len();
            record.put(&mut out, name);
            if out.len() > most {
                out.truncate(end);
                out[2] |= (TRUNCATED >> 8) as u8;
                break;
            }
            counts[list] += 1;
        }
        for (count, at) in counts.iter().zip([6, 8, 10]) {
            out[at..at + 2].copy_from_slice(&u16::to_be_bytes(*count));
        }
        self.put_options(&mut out);
        out.freeze()
    }

    /// Up to the question; the counts of records are still to be written.
    fn header(&self) -> BytesMut {
        let mut out = BytesMut::new();
        out.put_u16(self.id);
        let flag = |is_set: bool, bit: u16| if is_set { bit } else { 0 };
        // Whoever wants recursion has it.
        let recursion = flag(self.is_recursive, 0x0100) | flag(self.is_recursive && self.is_answer, 0x0080);
        let own = flag(self.is_answer, 0x8000) | flag(self.is_authoritative, 0x0400);
        out.put_u16(own | flag(self.is_truncated, TRUNCATED) | recursion | u16::from(self.outcome.0));
        out.put_u16(u16::from(self.question.is_some()));
        out.put_slice(&[0; 6]);
        if let Some(DnsQuestion { name, kind }) = &self.question {
            put_name(&mut out, name);
            out.put_u16(kind.0);
            out.put_u16(CLASS_IN);
        }
        out
    }

    fn put_options(&self, out: &mut BytesMut) {
        if let Some(bytes) = self.udp_bytes {
            out.put_u8(0);
            out.put_u16(RecordType::OPT.0);
            out.put_u16(bytes);
            out.put_u32(0);
            out.put_u16(0);
        }
    }

    /// As it is sent over UDP to somebody who takes so many bytes: what does not fit is left out, and that is
    /// said.
    pub fn write_datagram(&self, most: Option<u16>) -> Bytes {
        let most = most.map_or(MAX_PLAIN_BYTES, usize::from).clamp(MAX_PLAIN_BYTES, MAX_UDP_BYTES);
        self.write_within(most)
    }
}

impl RecordData {
    /// Its type.
    pub fn kind(&self) -> RecordType {
        match self {
            RecordData::V4(_) => RecordType::A,
            RecordData::V6(_) => RecordType::AAAA,
            RecordData::Alias(_) => RecordType::CNAME,
            RecordData::Name(_) => RecordType::PTR,
            RecordData::Place(..) => RecordType::SRV,
            RecordData::Text(_) => RecordType::TXT,
            RecordData::Zone(..) => RecordType::SOA,
            RecordData::Other(kind, _) => *kind,
        }
    }

    fn put(&self, out: &mut BytesMut) {
        match self {
            RecordData::V4(address) => out.put_slice(&address.octets()),
            RecordData::V6(address) => out.put_slice(&address.octets()),
            RecordData::Alias(name) | RecordData::Name(name) => put_name(out, name),
            RecordData::Place(priority, weight, port, name) => {
                [priority, weight, port].into_iter().for_each(|number| out.put_u16(*number));
                put_name(out, name);
            }
            RecordData::Text(text) => {
                let text = &text.as_bytes()[..text.len().min(255)];
                out.put_u8(text.len() as u8);
                out.put_slice(text);
            }
            RecordData::Zone(server, mailbox, numbers) => {
                put_name(out, server);
                put_name(out, mailbox);
                numbers.iter().for_each(|number| out.put_u32(*number));
            }
            RecordData::Other(_, bytes) => out.put_slice(bytes),
        }
    }
}

impl DnsRecord {
    /// In an answer to a question of the name `asked`.
    fn put(&self, out: &mut BytesMut, asked: &str) {
        put_name_again(out, &self.name, asked);
        out.put_u16(self.data.kind().0);
        out.put_u16(CLASS_IN);
        out.put_u32(self.ttl);
        let mut data = BytesMut::new();
        self.data.put(&mut data);
        out.put_u16(u16::try_from(data.len()).unwrap_or(u16::MAX));
        out.put_slice(&data);
    }
}

/// A name whose end is an end of the name that was asked for: a pointer stands for what both have.
fn put_name_again(out: &mut BytesMut, name: &str, asked: &str) {
    // Where a label of it was cut, what is behind is not where it would be.
    let is_as_written = asked.split('.').all(|label| (1..=63).contains(&label.len()));
    let starts = std::iter::once(0).chain(name.match_indices('.').map(|(dot, _)| dot + 1));
    let same =
        starts.filter(|_| is_as_written).find_map(|start| Some((start, place_in(asked, &name[start..])?)));
    let Some((start, place)) = same else { return put_name(out, name) };
    put_labels(out, &name[..start]);
    out.put_u16(0xc000 | place);
}

/// Where in a message the end of the name that was asked for is; nothing when it is no such end.
fn place_in(asked: &str, end: &str) -> Option<u16> {
    let before = asked.strip_suffix(end).filter(|_| !end.is_empty())?;
    let is_whole = before.is_empty() || before.ends_with('.');
    u16::try_from(QUESTION_AT + before.len()).ok().filter(|place| is_whole && *place < 0x4000)
}

fn put_name(out: &mut BytesMut, name: &str) {
    put_labels(out, name);
    out.put_u8(0);
}

/// Labels of more than 63 bytes are cut: nobody has such a name.
fn put_labels(out: &mut BytesMut, name: &str) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(63)];
        out.put_u8(label.len() as u8);
        out.put_slice(label);
    }
}

struct MessageReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl MessageReader<'_> {
    fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.u8()?, self.u8()?]))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }

    /// A pointer leads to an earlier part of the message, and may lead on; not for ever.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        let mut back = None;
        for _ in 0..MAX_STEPS {
            let length = self.u8()?;
            match length {
                0 => {
                    self.at = back.unwrap_or(self.at);
                    return Some(name);
                }
                1..=63 => {
                    let label = self.bytes.get(self.at..self.at + usize::from(length))?;
                    self.at += usize::from(length);
                    let dot = if name.is_empty() { "" } else { "." };
                    name.push_str(dot);
                    name.push_str(&String::from_utf8_lossy(label));
                    if name.len() > MAX_NAME_BYTES {
                        return None;
                    }
                }
                192.. => {
                    let target = usize::from(length & 63) << 8 | usize::from(self.u8()?);
                    back = back.or(Some(self.at));
                    self.at = target;
                }
                _ => return None,
            }
        }
        None
    }

    fn records(&mut self, count: u16, udp_bytes: &mut Option<u16>) -> Option<Vec<DnsRecord>> {
        let mut records = vec![];
        for _ in 0..count {
            let (name, kind, class) = (self.name()?, RecordType(self.u16()?), self.u16()?);
            let (ttl, length) = (self.u32()?, usize::from(self.u16()?));
            let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
            if kind == RecordType::OPT {
                *udp_bytes = Some(class);
            } else {
                records.push(DnsRecord { name, ttl, data: self.data(kind, end)? });
            }
            self.at = end;
        }
        Some(records)
    }

    fn data(&mut self, kind: RecordType, end: usize) -> Option<RecordData> {
        let rest = &self.bytes[self.at..end];
        Some(match kind {
            RecordType::A => RecordData::V4(<[u8; 4]>::try_from(rest).ok()?.into()),
            RecordType::AAAA => RecordData::V6(<[u8; 16]>::try_from(rest).ok()?.into()),
            RecordType::CNAME => RecordData::Alias(self.name()?),
            RecordType::PTR => RecordData::Name(self.name()?),
            RecordType::SRV => RecordData::Place(self.u16()?, self.u16()?, self.u16()?, self.name()?),
            RecordType::TXT => RecordData::Text(String::from_utf8_lossy(rest.get(1..)?).into_owned()),
            RecordType::SOA => {
                let (server, mailbox) = (self.name()?, self.name()?);
                let mut numbers = [0; 5];
                for number in &mut numbers {
                    *number = self.u32()?;
                }
                RecordData::Zone(server, mailbox, numbers)
            }
            _ => RecordData::Other(kind, Bytes::copy_from_slice(rest)),
        })
    }
}
