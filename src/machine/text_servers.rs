//! Servers of text protocols that keep what they are told: redis and memcached; and databases that say that
//! they are there.

use crate::redis::{self, RedisSession};
use crate::text_lines::{HeardText, MAX_COMMAND_BYTES, MAX_SAID_BYTES, line, number, words};
use crate::text_store::TextStore;

/// Servers of text protocols: their repositories, and where they listen.
pub(crate) const TEXT_SERVERS: &[(&str, i64, TextProtocol)] = &[
    ("docker.io/library/redis", 6379, TextProtocol::Redis),
    ("docker.io/valkey/valkey", 6379, TextProtocol::Redis),
    ("registry.k8s.io/e2e-test-images/redis", 6379, TextProtocol::Redis),
    ("docker.io/library/memcached", 11211, TextProtocol::Memcached),
    ("docker.io/library/postgres", 5432, TextProtocol::Postgres),
    ("docker.io/library/mysql", 3306, TextProtocol::MySql),
    ("docker.io/library/mariadb", 3306, TextProtocol::MySql),
    ("docker.io/bitnami/redis", 6379, TextProtocol::Redis),
    ("docker.io/bitnami/valkey", 6379, TextProtocol::Redis),
    ("docker.io/bitnami/memcached", 11211, TextProtocol::Memcached),
    ("docker.io/bitnami/postgresql", 5432, TextProtocol::Postgres),
    ("docker.io/bitnami/mysql", 3306, TextProtocol::MySql),
    ("docker.io/bitnami/mariadb", 3306, TextProtocol::MySql),
];
/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextProtocol {
    /// RESP2, and its inline form.
    Redis,
    /// memcached's text protocol.
    Memcached,
    /// agnhost's `serve-hostname --tcp`: its name, and the end.
    HostName,
    /// agnhost's `tcp-reset`: it hangs up on whoever says anything.
    Reset,
    /// PostgreSQL lets everybody in, and plays no query.
    Postgres,
    /// MySQL says who it is, and no more.
    MySql,
}

/// One connection to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSession {
    protocol: TextProtocol,
    redis: RedisSession,
}

impl TextSession {
    /// Nobody has said anything.
    pub(crate) fn new(protocol: TextProtocol, port: i64, password: Option<String>) -> TextSession {
        TextSession { protocol, redis: RedisSession::new(port, password) }
    }

    /// Where the server listens.
    pub(crate) fn port(&self) -> i64 {
        self.redis.port
    }

    /// What the server says of itself once it has begun.
    pub(crate) fn first_lines(&self) -> Vec<String> {
        match self.protocol {
            TextProtocol::Redis => redis::first_lines(self.port()),
            _ => vec![],
        }
    }

    /// What a server says when a connection is there, and whether that is all.
    pub fn greeting(&self, host_name: &str) -> Option<Vec<u8>> {
        match self.protocol {
            TextProtocol::HostName => Some(host_name.as_bytes().to_vec()),
            TextProtocol::MySql => Some(mysql_handshake()),
            _ => None,
        }
    }

    /// What it says to the first command of what was received; nothing while that is not whole.
    pub fn hear(&mut self, store: &mut TextStore, received: &[u8]) -> Option<HeardText> {
        let heard = match self.protocol {
            TextProtocol::Redis => redis::hear(&mut self.redis, store, received),
            TextProtocol::Memcached => memcached(store, received),
            TextProtocol::Postgres => postgres(received),
            TextProtocol::Reset => Some(HeardText { taken: received.len(), says: vec![], ends: true }),
            TextProtocol::HostName | TextProtocol::MySql => None,
        };
        let is_too_long = heard.is_none() && received.len() > MAX_COMMAND_BYTES;
        heard.or(is_too_long.then(|| HeardText { taken: received.len(), ends: true, ..HeardText::default() }))
    }
}

/// `Protocol::HandshakeV10`, and what it takes to read it as one.
fn mysql_handshake() -> Vec<u8> {
    const VERSION: &[u8] = b"\x0a8.4.0\0";
    const REST: &[u8] =
        b"\x08\0\0\0kubarium\0\xff\xf7\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0kubarium-pod\0\
        caching_sha2_password\0";
    let length = u8::try_from(VERSION.len() + REST.len()).unwrap_or(u8::MAX);
    [&[length, 0, 0, 0], VERSION, REST].concat()
}

/// A message of PostgreSQL's: whoever wants TLS is told that there is none, whoever begins is let in, and
/// what is asked then is refused.
fn postgres(received: &[u8]) -> Option<HeardText> {
    const IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    const WHY: &[u8] = b"SERROR\0C0A000\0Mqueries are not played here\0\0";
    const READY: &[u8] = b"Z\0\0\0\x05I";
    let (&kind, rest) = received.split_first()?;
    // The first message has no letter before its length, which begins with a zero.
    let (at, length) = if kind == 0 { (0, received) } else { (1, rest) };
    let length = usize::try_from(u32::from_be_bytes(length.get(..4)?.try_into().ok()?)).ok()?;
    let taken = at + length.max(4);
    let message = received.get(..taken);
    if taken > MAX_COMMAND_BYTES {
        return Some(HeardText { taken: received.len(), ends: true, ..HeardText::default() });
    }
    let message = message?;
    let refused = || {
        let length = u32::try_from(WHY.len() + 4).unwrap_or_default().to_be_bytes();
        [b"E", &length[..], WHY, READY].concat()
    };
    // `SSLRequest` and `GSSENCRequest`
    let (says, ends) = match (kind, message.get(4..8)) {
        (0, Some([0x04, 0xd2, 0x16, 0x2f | 0x30])) => (b"N".to_vec(), false),
        (0, _) => (IN.to_vec(), false),
        (b'X', _) => (vec![], true),
        (b'Q', _) => (refused(), false),
        _ => (vec![], false),
    };
    Some(HeardText { taken, says, ends })
}

fn memcached(store: &mut TextStore, received: &[u8]) -> Option<HeardText> {
    let (first, mut taken) = line(received)?;
    let Some(words) = words(first, |byte| *byte == b' ') else {
        return Some(HeardText { taken, says: b"CLIENT_ERROR too many words\r\n".to_vec(), ends: true });
    };
    let ends = words.first() == Some(&&b"quit"[..]);
    let says = match words.as_slice() {
        [b"set" | b"add" | b"replace", key, _, _, size, ..] => {
            let Some(size) = number(size).filter(|size| *size <= MAX_COMMAND_BYTES) else {
                return Some(HeardText {
                    taken,
                    says: b"CLIENT_ERROR bad data chunk\r\n".to_vec(),
                    ends: false,
                });
            };
            let value = received.get(taken..taken + size)?.to_vec();
            taken += size + 2;
            (received.len() >= taken).then_some(())?;
            let is_there = store.get(key).is_some();
            match words[0] {
                b"add" if is_there => b"NOT_STORED\r\n".to_vec(),
                b"replace" if !is_there => b"NOT_STORED\r\n".to_vec(),
                _ if store.set(key, value) => b"STORED\r\n".to_vec(),
                _ => b"SERVER_ERROR out of memory storing object\r\n".to_vec(),
            }
        }
        [b"get" | b"gets", keys @ ..] => match got(store, keys) {
            Some(says) => says,
            None => {
                let says = b"SERVER_ERROR out of memory\r\n".to_vec();
                return Some(HeardText { taken, says, ends: true });
            }
        },
        [b"delete", key, ..] if store.remove(key) => b"DELETED\r\n".to_vec(),
        [b"incr" | b"decr", key, count] if store.get(key).is_some() => {
            let sign = if words[0] == b"incr" { 1 } else { -1 };
            let count = number(count).and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
            match store.add(key, sign * count) {
                Ok(sum) => format!("{sum}\r\n").into_bytes(),
                Err(_) => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_vec(),
            }
        }
        [b"delete" | b"incr" | b"decr", ..] => b"NOT_FOUND\r\n".to_vec(),
        [b"version"] => b"VERSION 1.6.39\r\n".to_vec(),
        [b"flush_all", ..] => {
            store.clear();
            b"OK\r\n".to_vec()
        }
        [b"stats", ..] => format!("STAT curr_items {}\r\nEND\r\n", store.count()).into_bytes(),
        [b"quit"] => vec![],
        _ => b"ERROR\r\n".to_vec(),
    };
    Some(HeardText { taken, says, ends })
}

/// Nothing for more than is said at once.
fn got(store: &TextStore, keys: &[&[u8]]) -> Option<Vec<u8>> {
    let mut said = Vec::new();
    for key in keys {
        if let Some(value) = store.text(key) {
            let size = format!(" 0 {}\r\n", value.len());
            (said.len() + key.len() + value.len() <= MAX_SAID_BYTES).then_some(())?;
            said.extend([b"VALUE ", *key, size.as_bytes(), value, b"\r\n"].concat());
        }
    }
    said.extend(b"END\r\n");
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_lines::MAX_WORDS;

    fn session(protocol: TextProtocol) -> TextSession {
        TextSession::new(protocol, 1, None)
    }

    fn talk(protocol: TextProtocol, said: &str) -> String {
        let (mut store, mut rest, mut heard) = (TextStore::default(), said.as_bytes(), Vec::new());
        let mut session = session(protocol);
        while let Some(one) = session.hear(&mut store, rest) {
            heard.extend(one.says);
            rest = &rest[one.taken..];
        }
        String::from_utf8(heard).unwrap()
    }

    #[test]
    fn memcached_keeps_what_it_is_told() {
        let memcached = |said| talk(TextProtocol::Memcached, said);
        let counted = memcached("set a 0 0 1\r\n5\r\nincr a 2\r\nget a b\r\n");
        assert_eq!(counted, "STORED\r\n7\r\nVALUE a 0 1\r\n7\r\nEND\r\n");
        let missing = memcached("get a\r\ndelete a\r\nadd a 0 0 1\r\nx\r\nadd a 0 0 1\r\ny\r\n");
        assert_eq!(missing, "END\r\nNOT_FOUND\r\nSTORED\r\nNOT_STORED\r\n");
        assert_eq!(memcached("what\r\nset a 0 0 x\r\n"), "ERROR\r\nCLIENT_ERROR bad data chunk\r\n");
    }

    #[test]
    fn what_is_too_long_ends_its_connection() {
        let endless = vec![b'x'; MAX_COMMAND_BYTES + 1];
        assert!(session(TextProtocol::Redis).hear(&mut TextStore::default(), &endless).unwrap().ends);
    }

    #[test]
    fn one_line_makes_no_server_say_more_than_its_bound() {
        let mut store = TextStore::default();
        assert!(store.set(b"k", vec![b'x'; MAX_COMMAND_BYTES]));
        let mut memcached = |count| {
            let line = format!("get{}\r\n", " k".repeat(count));
            session(TextProtocol::Memcached).hear(&mut store, line.as_bytes()).unwrap()
        };
        let one = memcached(1);
        assert!(!one.ends && one.says.len() > MAX_COMMAND_BYTES);
        let many = memcached(MAX_WORDS - 1);
        assert_eq!((many.says.as_slice(), many.ends), (&b"SERVER_ERROR out of memory\r\n"[..], true));
        let endless = memcached(MAX_WORDS);
        assert_eq!((endless.says.as_slice(), endless.ends), (&b"CLIENT_ERROR too many words\r\n"[..], true));
        let line = format!("EXISTS{}\r\n", " k".repeat(MAX_WORDS));
        let redis = session(TextProtocol::Redis).hear(&mut store, line.as_bytes()).unwrap();
        assert_eq!((redis.says.as_slice(), redis.ends), (&b"-ERR Protocol error\r\n"[..], true));
    }

    #[test]
    fn databases_say_that_they_are_there() {
        let mut store = TextStore::default();
        let mut hear = |bytes: &[u8]| session(TextProtocol::Postgres).hear(&mut store, bytes);
        let asks_for_tls = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
        assert_eq!(hear(&asks_for_tls).unwrap(), HeardText { taken: 8, says: b"N".to_vec(), ends: false });
        assert_eq!(hear(&asks_for_tls[..7]), None, "it is not whole");
        let begins = [&[0, 0, 0, 15, 0, 3, 0, 0][..], b"user\0a\0"].concat();
        assert!(hear(&begins).unwrap().says.ends_with(b"Z\0\0\0\x05I"));
        let refused = hear(b"Q\0\0\0\x0eselect 1;\0").unwrap();
        assert!(refused.says.starts_with(b"E\0\0\0") && refused.taken == 15, "{refused:?}");
        assert!(hear(b"X\0\0\0\x04").unwrap().ends);
        assert!(hear(b"Q\xff\xff\xff\xff").unwrap().ends, "a length that nobody waits for");
        let greeting = session(TextProtocol::MySql).greeting("my").unwrap();
        assert_eq!((usize::from(greeting[0]), &greeting[4..10]), (greeting.len() - 4, &b"\x0a8.4.0"[..]));
    }
}
