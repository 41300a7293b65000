//! What is written is read, and how much of it fits.

use bytes::{BufMut, Bytes, BytesMut};

use crate::dns::{
    DnsMessage, DnsRecord, MAX_PLAIN_BYTES, MAX_TCP_BYTES, MAX_UDP_BYTES, RecordData, RecordType,
    ResponseCode,
};

fn record(data: RecordData) -> DnsRecord {
    DnsRecord { name: "web.default.svc.cluster.local".into(), ttl: 30, data }
}

#[test]
fn what_is_written_is_read() {
    let asked = DnsMessage { udp_bytes: Some(1_232), ..DnsMessage::ask(7, "web.default.", RecordType::SRV) };
    assert_eq!(DnsMessage::read(&asked.write()), Some(asked.clone()));
    let mut answer = asked.answer(ResponseCode::NO_ERROR);
    answer.is_authoritative = true;
    answer.answers = vec![
        record(RecordData::V4([10, 96, 0, 7].into())),
        record(RecordData::V6("fd00::7".parse().unwrap())),
        record(RecordData::Alias("example.com".into())),
        record(RecordData::Name("a.b".into())),
        record(RecordData::Place(0, 50, 80, "a.b".into())),
        record(RecordData::Text("1.1.0".into())),
        record(RecordData::Other(RecordType(99), Bytes::from_static(b"xy"))),
    ];
    let numbers = [1, 7_200, 1_800, 86_400, 30];
    answer.authorities = vec![record(RecordData::Zone("ns".into(), "hostmaster".into(), numbers))];
    answer.additional = vec![record(RecordData::V4([10, 96, 0, 8].into()))];
    assert_eq!(DnsMessage::read(&answer.write()), Some(answer));
}

#[test]
fn what_does_not_fit_is_left_out_and_that_is_said() {
    let mut answer = DnsMessage::ask(7, "web", RecordType::A).answer(ResponseCode::NO_ERROR);
    answer.answers = (0..12).map(|last| record(RecordData::V4([10, 0, 0, last].into()))).collect();
    let whole = answer.write();
    assert!(whole.len() > MAX_PLAIN_BYTES && whole.len() <= MAX_UDP_BYTES);
    assert_eq!(answer.write_datagram(Some(4_096)), whole);
    let cut = DnsMessage::read(&answer.write_datagram(None)).unwrap();
    assert!(cut.is_truncated);
    assert_eq!(cut.answers, answer.answers[..10]);
}

#[test]
fn the_name_that_was_asked_for_is_said_once() {
    let name = "web.default.svc.cluster.local";
    let mut answer = DnsMessage::ask(7, name, RecordType::A).answer(ResponseCode::NO_ERROR);
    let one = |last| record(RecordData::V4([10, 0, 0, last].into()));
    answer.answers = (0..50).map(one).collect();
    let further = |name: &str| DnsRecord { name: name.into(), ..one(99) };
    answer.additional =
        ["web-0.web.default.svc.cluster.local", "cluster.local", "xcluster.local", "b.c"].map(further).into();
    let whole = answer.write();
    assert_eq!(DnsMessage::read(&whole), Some(answer.clone()));
    assert_eq!(answer.write_datagram(Some(1_232)), whole);
    // Who has not said that he takes more gets what fits: whole records, and that it is not all.
    let cut = DnsMessage::read(&answer.write_datagram(None)).unwrap();
    assert!(cut.is_truncated);
    assert_eq!(cut.answers, answer.answers[..(MAX_PLAIN_BYTES - 12 - 35) / 16]);
}

#[test]
fn a_message_over_tcp_ends_at_a_record() {
    let mut answer = DnsMessage::ask(7, "web", RecordType::A).answer(ResponseCode::NO_ERROR);
    let one = DnsRecord { name: "web".into(), ..record(RecordData::V4([10, 0, 0, 1].into())) };
    answer.answers = vec![one; 5_000];
    let whole = answer.write();
    assert!(whole.len() <= MAX_TCP_BYTES && whole.len() + 16 > MAX_TCP_BYTES, "{}", whole.len());
    let read = DnsMessage::read(&whole).unwrap();
    assert!(read.is_truncated && read.answers.len() == (MAX_TCP_BYTES - 12 - 9) / 16);
}

#[test]
fn broken_messages_are_none() {
    let whole = DnsMessage::ask(7, "web.default", RecordType::A).write();
    for length in 0..whole.len() {
        assert_eq!(DnsMessage::read(&whole[..length]), None, "{length}");
    }
    // A name that leads to itself.
    let mut circle = BytesMut::from(&whole[..12]);
    circle.put_slice(&[0xc0, 12, 0, 1, 0, 1]);
    assert_eq!(DnsMessage::read(&circle), None);
    // A label that comes back by a pointer is read.
    let mut pointed = BytesMut::from(&whole[..]);
    pointed[7] = 1;
    pointed.put_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 0, 0, 1]);
    let read = DnsMessage::read(&pointed).unwrap();
    assert_eq!(read.answers[0].name, "web.default");
    assert_eq!(read.answers[0].data, RecordData::V4([10, 0, 0, 1].into()));
}
