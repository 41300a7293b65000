//! Servers of text protocols that keep what they are told: redis and memcached, as far as `PING`, `SET`,
//! `GET`, `INCR` and their kin go.

use std::collections::BTreeMap;

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
/// Variables by which these listen elsewhere.
pub(crate) const PORT_VARIABLES: &[&str] = &[
    "PGPORT",
    "MYSQL_TCP_PORT",
    "MYSQL_PORT",
    "REDIS_PORT_NUMBER",
    "VALKEY_PORT_NUMBER",
    "MEMCACHED_PORT_NUMBER",
    "POSTGRESQL_PORT_NUMBER",
    "MYSQL_PORT_NUMBER",
    "MARIADB_PORT_NUMBER",
];
/// So much a server keeps; whoever would store more is told that its memory is full.
pub const MAX_STORED_BYTES: usize = 16 << 20;
/// A command may be so long; whoever sends a longer one is cut off.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// So many words may a command have; one with more is no command.
const MAX_WORDS: usize = 1024;
/// So much is said to one command; whoever asks for more at once is told so, and cut off.
const MAX_SAID_BYTES: usize = 4 << 20;
/// What it takes to keep a value, beside its key and itself.
const ENTRY_BYTES: usize = 64;

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

/// What a server keeps for all its connections.
#[derive(Debug, Default)]
pub struct TextStore {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

/// What comes of what was received.
#[derive(Debug, Default, PartialEq)]
pub struct HeardText {
    /// So many bytes were understood.
    pub taken: usize,
    /// What is said to that.
    pub says: Vec<u8>,
    /// The connection ends with it.
    pub ends: bool,
}

impl TextProtocol {
    /// What a server says when a connection is there, and whether that is all.
    pub fn greeting(self, host_name: &str) -> Option<Vec<u8>> {
        match self {
            TextProtocol::HostName => Some(host_name.as_bytes().to_vec()),
            TextProtocol::MySql => Some(mysql_handshake()),
            _ => None,
        }
    }

    /// What it says to the first command of what was received; nothing while that is not whole.
    pub fn hear(self, store: &mut TextStore, received: &[u8]) -> Option<HeardText> {
        let heard = match self {
            TextProtocol::Redis => redis(store, received),
            TextProtocol::Memcached => memcached(store, received),
            TextProtocol::Postgres => postgres(received),
            TextProtocol::Reset => Some(HeardText { taken: received.len(), says: vec![], ends: true }),
            TextProtocol::HostName | TextProtocol::MySql => None,
        };
        let is_too_long = heard.is_none() && received.len() > MAX_COMMAND_BYTES;
        heard.or(is_too_long.then(|| HeardText { taken: received.len(), ends: true, ..HeardText::default() }))
    }
}

impl TextStore {
    /// Whether there was room.
    fn set(&mut self, key: &[u8], value: Vec<u8>) -> bool {
        let bytes = self.bytes - self.size(key) + entry_bytes(key, &value);
        if bytes > MAX_STORED_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.values.insert(key.to_vec(), value);
        true
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.bytes -= self.size(key);
        self.values.remove(key).is_some()
    }

    fn size(&self, key: &[u8]) -> usize {
        self.values.get(key).map_or(0, |value| entry_bytes(key, value))
    }

    /// The sum, unless what is there is no number.
    fn add(&mut self, key: &[u8], count: i64) -> Option<i64> {
        let old = self.values.get(key).map_or(Some(0), |value| signed(value))?;
        let sum = old.checked_add(count)?;
        self.set(key, sum.to_string().into_bytes()).then_some(sum)
    }
}

fn entry_bytes(key: &[u8], value: &[u8]) -> usize {
    ENTRY_BYTES + key.len() + value.len()
}

/// A line and its length with its end.
fn line(received: &[u8]) -> Option<(&[u8], usize)> {
    let end = received.iter().position(|byte| *byte == b'\n')?;
    Some((received[..end].strip_suffix(b"\r").unwrap_or(&received[..end]), end + 1))
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn signed(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
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

fn redis(store: &mut TextStore, received: &[u8]) -> Option<HeardText> {
    let (words, taken) = redis_words(received)?;
    let Some(words) = words else {
        return Some(HeardText { taken, says: b"-ERR Protocol error\r\n".to_vec(), ends: true });
    };
    let Some((name, rest)) = words.split_first() else {
        return Some(HeardText { taken, ..HeardText::default() });
    };
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    let says = redis_answer(store, &name, rest);
    Some(HeardText { taken, says, ends: name == "QUIT" })
}

type Words = Vec<Vec<u8>>;

/// A line's words, unless there are too many.
fn words(line: &[u8], is_between: impl FnMut(&u8) -> bool) -> Option<Vec<&[u8]>> {
    let words = line.split(is_between).filter(|word| !word.is_empty());
    let words: Vec<&[u8]> = words.take(MAX_WORDS + 1).collect();
    (words.len() <= MAX_WORDS).then_some(words)
}

/// `*2\r\n$3\r\nGET\r\n$1\r\na\r\n`, or a plain line; the inner nothing is for what is neither.
fn redis_words(received: &[u8]) -> Option<(Option<Words>, usize)> {
    let (first, mut at) = line(received)?;
    let Some(count) = first.strip_prefix(b"*") else {
        let words = words(first, u8::is_ascii_whitespace);
        let taken = if words.is_some() { at } else { received.len() };
        return Some((words.map(|words| words.into_iter().map(<[u8]>::to_vec).collect()), taken));
    };
    let count = number(count).filter(|count| *count <= MAX_WORDS);
    let Some(count) = count else { return Some((None, received.len())) };
    let mut words = Vec::new();
    for _ in 0..count {
        let (head, length) = line(&received[at..])?;
        at += length;
        let size = head.strip_prefix(b"$").and_then(number).filter(|size| *size <= MAX_COMMAND_BYTES);
        let Some(size) = size else { return Some((None, received.len())) };
        words.push(received.get(at..at + size)?.to_vec());
        at += size + 2;
        (received.len() >= at).then_some(())?;
    }
    Some((Some(words), at))
}

fn redis_answer(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> Vec<u8> {
    let bulk = |value: Option<&Vec<u8>>| match value {
        Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
        None => b"$-1\r\n".to_vec(),
    };
    let integer = |number: i64| format!(":{number}\r\n").into_bytes();
    let not_integer = || b"-ERR value is not an integer or out of range\r\n".to_vec();
    match (name, rest) {
        ("PING", []) => b"+PONG\r\n".to_vec(),
        ("PING" | "ECHO", [text, ..]) => bulk(Some(text)),
        ("SET", [key, value, ..]) if store.set(key, value.clone()) => b"+OK\r\n".to_vec(),
        ("SET", [_, _, ..]) => b"-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_vec(),
        ("GET", [key]) => bulk(store.values.get(key)),
        ("INCR", [key]) => store.add(key, 1).map_or_else(not_integer, integer),
        ("DECR", [key]) => store.add(key, -1).map_or_else(not_integer, integer),
        ("INCRBY", [key, count]) => {
            let count = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
            count.and_then(|count| store.add(key, count)).map_or_else(not_integer, integer)
        }
        ("DEL", keys) => integer(keys.iter().filter(|key| store.remove(key)).count() as i64),
        ("EXISTS", keys) => integer(keys.iter().filter(|key| store.values.contains_key(*key)).count() as i64),
        ("DBSIZE", _) => integer(store.values.len() as i64),
        ("KEYS", _) => {
            let keys: Vec<u8> = store.values.keys().flat_map(|key| bulk(Some(key))).collect();
            [format!("*{}\r\n", store.values.len()).as_bytes(), &keys].concat()
        }
        ("FLUSHALL" | "FLUSHDB", _) => {
            *store = TextStore::default();
            b"+OK\r\n".to_vec()
        }
        ("QUIT" | "SELECT" | "AUTH" | "CLIENT", _) => b"+OK\r\n".to_vec(),
        ("INFO", _) => bulk(Some(&INFO.to_vec())),
        ("COMMAND" | "CONFIG", _) => b"*0\r\n".to_vec(),
        ("GET" | "INCR" | "SET" | "ECHO" | "DECR" | "INCRBY", _) => {
            format!("-ERR wrong number of arguments for '{}' command\r\n", name.to_lowercase()).into_bytes()
        }
        _ => format!("-ERR unknown command '{name}', with args beginning with: \r\n").into_bytes(),
    }
}

const INFO: &[u8] = b"# Server\r\nredis_mode:standalone\r\n# Replication\r\nrole:master\r\n";

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
            let is_there = store.values.contains_key(*key);
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
        [b"incr" | b"decr", key, count] if store.values.contains_key(*key) => {
            let sign = if words[0] == b"incr" { 1 } else { -1 };
            let count = number(count).and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
            match store.add(key, sign * count) {
                Some(sum) => format!("{sum}\r\n").into_bytes(),
                None => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n".to_vec(),
            }
        }
        [b"delete" | b"incr" | b"decr", ..] => b"NOT_FOUND\r\n".to_vec(),
        [b"version"] => b"VERSION 1.6.39\r\n".to_vec(),
        [b"flush_all", ..] => {
            *store = TextStore::default();
            b"OK\r\n".to_vec()
        }
        [b"stats", ..] => format!("STAT curr_items {}\r\nEND\r\n", store.values.len()).into_bytes(),
        [b"quit"] => vec![],
        _ => b"ERROR\r\n".to_vec(),
    };
    Some(HeardText { taken, says, ends })
}

/// Nothing for more than is said at once.
fn got(store: &TextStore, keys: &[&[u8]]) -> Option<Vec<u8>> {
    let mut said = Vec::new();
    for key in keys {
        if let Some(value) = store.values.get(*key) {
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

    fn talk(protocol: TextProtocol, said: &str) -> String {
        let (mut store, mut rest, mut heard) = (TextStore::default(), said.as_bytes(), Vec::new());
        while let Some(one) = protocol.hear(&mut store, rest) {
            heard.extend(one.says);
            rest = &rest[one.taken..];
        }
        String::from_utf8(heard).unwrap()
    }

    #[test]
    fn redis_keeps_what_it_is_told() {
        let redis = |said| talk(TextProtocol::Redis, said);
        assert_eq!(redis("PING\r\n*1\r\n$4\r\nping\r\n"), "+PONG\r\n+PONG\r\n");
        assert_eq!(redis("set a 5\r\nINCR a\r\nget a\r\nget b\r\n"), "+OK\r\n:6\r\n$1\r\n6\r\n$-1\r\n");
        assert_eq!(redis("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nx y\r\nDEL a b\r\n"), "+OK\r\n:1\r\n");
        assert_eq!(redis("SET a b\r\nINCR a\r\n"), "+OK\r\n-ERR value is not an integer or out of range\r\n");
        assert!(redis("WHAT\r\n").starts_with("-ERR unknown command 'WHAT'"));
        assert_eq!(redis("*x\r\n"), "-ERR Protocol error\r\n");
        assert_eq!(redis("*2\r\n$3\r\nGET\r\n$1\r\n"), "");
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
    fn what_is_too_much_is_refused() {
        let (mut store, large) = (TextStore::default(), vec![b'x'; MAX_STORED_BYTES / 2]);
        assert!(store.set(b"a", large.clone()) && !store.set(b"b", large.clone()));
        // What takes the place of what is there needs no more.
        assert!(store.set(b"a", large.clone()) && store.remove(b"a") && store.set(b"b", large));
        let endless = vec![b'x'; MAX_COMMAND_BYTES + 1];
        assert!(TextProtocol::Redis.hear(&mut store, &endless).unwrap().ends);
    }

    #[test]
    fn one_line_makes_no_server_say_more_than_its_bound() {
        let mut store = TextStore::default();
        assert!(store.set(b"k", vec![b'x'; MAX_COMMAND_BYTES]));
        let mut memcached = |count| {
            let line = format!("get{}\r\n", " k".repeat(count));
            TextProtocol::Memcached.hear(&mut store, line.as_bytes()).unwrap()
        };
        let one = memcached(1);
        assert!(!one.ends && one.says.len() > MAX_COMMAND_BYTES);
        let many = memcached(MAX_WORDS - 1);
        assert_eq!((many.says.as_slice(), many.ends), (&b"SERVER_ERROR out of memory\r\n"[..], true));
        let endless = memcached(MAX_WORDS);
        assert_eq!((endless.says.as_slice(), endless.ends), (&b"CLIENT_ERROR too many words\r\n"[..], true));
        let line = format!("EXISTS{}\r\n", " k".repeat(MAX_WORDS));
        let redis = TextProtocol::Redis.hear(&mut store, line.as_bytes()).unwrap();
        assert_eq!((redis.says.as_slice(), redis.ends), (&b"-ERR Protocol error\r\n"[..], true));
    }

    #[test]
    fn each_value_counts_whatever_its_size() {
        let mut store = TextStore::default();
        let stored = (0..MAX_STORED_BYTES).take_while(|key| store.set(&key.to_le_bytes(), vec![])).count();
        assert_eq!(stored, MAX_STORED_BYTES / (ENTRY_BYTES + 8));
    }

    #[test]
    fn databases_say_that_they_are_there() {
        let mut store = TextStore::default();
        let mut hear = |bytes: &[u8]| TextProtocol::Postgres.hear(&mut store, bytes);
        let asks_for_tls = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
        assert_eq!(hear(&asks_for_tls).unwrap(), HeardText { taken: 8, says: b"N".to_vec(), ends: false });
        assert_eq!(hear(&asks_for_tls[..7]), None, "it is not whole");
        let begins = [&[0, 0, 0, 15, 0, 3, 0, 0][..], b"user\0a\0"].concat();
        assert!(hear(&begins).unwrap().says.ends_with(b"Z\0\0\0\x05I"));
        let refused = hear(b"Q\0\0\0\x0eselect 1;\0").unwrap();
        assert!(refused.says.starts_with(b"E\0\0\0") && refused.taken == 15, "{refused:?}");
        assert!(hear(b"X\0\0\0\x04").unwrap().ends);
        assert!(hear(b"Q\xff\xff\xff\xff").unwrap().ends, "a length that nobody waits for");
        let greeting = TextProtocol::MySql.greeting("my").unwrap();
        assert_eq!((usize::from(greeting[0]), &greeting[4..10]), (greeting.len() - 4, &b"\x0a8.4.0"[..]));
    }
}
