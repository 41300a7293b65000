//! Redis: what it says to the commands that most clients use. It speaks RESP2, and has one database.

mod reply;
mod values;

use reply::{RedisAnswer, RedisReply, RedisWrong};
use values::{counted, of_hashes, of_keys, of_lists, of_sets, of_texts, of_times};

use crate::text_lines::{HeardText, MAX_COMMAND_BYTES, MAX_WORDS, line, number, words};
use crate::text_store::TextStore;

/// As it calls itself.
const VERSION: &str = "7.4.7";

/// What it says of itself when it begins.
pub(crate) fn first_lines(port: i64) -> Vec<String> {
    let child = "1:C {redis-time} *";
    let main = "1:M {redis-time} *";
    vec![
        format!("{child} oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo"),
        format!("{child} Redis version={VERSION}, bits=64, commit=00000000, modified=0, pid=1, just started"),
        format!("{child} Configuration loaded"),
        format!("{main} monotonic clock: POSIX clock_gettime"),
        format!("{main} Running mode=standalone, port={port}."),
        format!("{main} Server initialized"),
        format!("{main} Ready to accept connections tcp"),
    ]
}

type Words = Vec<Vec<u8>>;

/// One connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RedisSession {
    /// Where the server listens.
    pub(crate) port: i64,
    /// What it wants to hear first.
    password: Option<String>,
    /// Whether that was said.
    is_in: bool,
}

impl RedisSession {
    /// Nobody has said anything.
    pub(crate) fn new(port: i64, password: Option<String>) -> RedisSession {
        RedisSession { port, password, is_in: false }
    }
}

/// What is said to the first command of what was received.
pub(crate) fn hear(session: &mut RedisSession, store: &mut TextStore, received: &[u8]) -> Option<HeardText> {
    let (words, taken) = command_words(received)?;
    let Some(words) = words else {
        return Some(HeardText { taken, says: b"-ERR Protocol error\r\n".to_vec(), ends: true });
    };
    let Some((name, rest)) = words.split_first() else {
        return Some(HeardText { taken, ..HeardText::default() });
    };
    let asked = String::from_utf8_lossy(name).into_owned();
    let name = asked.to_ascii_uppercase();
    let is_shut = session.password.is_some() && !session.is_in;
    let answered = match name.as_str() {
        "AUTH" => authenticate(session, rest),
        "QUIT" => Ok(RedisReply::Status("OK")),
        _ if is_shut => Err(RedisWrong::Says("NOAUTH Authentication required.")),
        _ => answer(session, store, &name, rest),
    };
    let says = match answered {
        Ok(reply) => reply.encoded(),
        Err(wrong) => format!("-{}\r\n", wrong.text(&asked, rest)).into_bytes(),
    };
    Some(HeardText { taken, says, ends: name == "QUIT" })
}

/// `*2\r\n$3\r\nGET\r\n$1\r\na\r\n`, or a plain line; the inner nothing is for what is neither.
fn command_words(received: &[u8]) -> Option<(Option<Words>, usize)> {
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

fn authenticate(session: &mut RedisSession, rest: &[Vec<u8>]) -> RedisAnswer {
    const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";
    const NONE: &str = "ERR AUTH <password> called without any password configured for the default user. \
        Are you sure your configuration is correct?";
    let (user, said) = match rest {
        [said] => (&b"default"[..], said),
        [user, said] => (user.as_slice(), said),
        _ => return Err(RedisWrong::Arguments),
    };
    match &session.password {
        // Without a password the user of that name takes any.
        None if rest.len() == 2 && user == b"default" => {}
        None if rest.len() == 2 => return Err(RedisWrong::Says(WRONG)),
        None => return Err(RedisWrong::Says(NONE)),
        Some(password) if user == b"default" && password.as_bytes() == said.as_slice() => {}
        Some(_) => return Err(RedisWrong::Says(WRONG)),
    }
    session.is_in = true;
    Ok(RedisReply::Status("OK"))
}

fn answer(session: &RedisSession, store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    match name {
        "SET" | "GET" | "SETEX" | "SETNX" | "GETSET" | "GETDEL" | "MSET" | "MGET" | "APPEND" | "STRLEN" => {
            of_texts(store, name, rest)
        }
        "INCR" | "DECR" | "INCRBY" | "DECRBY" => counted(store, name, rest),
        "LPUSH" | "RPUSH" | "LPOP" | "RPOP" | "LLEN" | "LRANGE" | "LINDEX" => of_lists(store, name, rest),
        "HSET" | "HMSET" | "HSETNX" | "HGET" | "HMGET" | "HGETALL" | "HDEL" | "HLEN" | "HKEYS" | "HVALS"
        | "HEXISTS" => of_hashes(store, name, rest),
        "SADD" | "SREM" | "SMEMBERS" | "SISMEMBER" | "SCARD" => of_sets(store, name, rest),
        "EXPIRE" | "PEXPIRE" | "TTL" | "PTTL" | "PERSIST" => of_times(store, name, rest),
        "DEL" | "UNLINK" | "EXISTS" | "TYPE" | "KEYS" | "RENAME" | "DBSIZE" | "FLUSHALL" | "FLUSHDB" => {
            of_keys(store, name, rest)
        }
        _ => of_itself(session, store, name, rest),
    }
}

fn of_itself(session: &RedisSession, store: &TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    Ok(match (name, rest) {
        ("PING", []) => RedisReply::Status("PONG"),
        ("PING" | "ECHO", [text]) => RedisReply::Bulk(text.clone()),
        ("PING" | "ECHO", _) => return Err(RedisWrong::Arguments),
        ("SELECT" | "CLIENT" | "SAVE" | "BGSAVE", _) => RedisReply::Status("OK"),
        ("INFO", _) => RedisReply::Bulk(info(session, store).into_bytes()),
        ("COMMAND", _) => RedisReply::Bulks(vec![]),
        ("CONFIG", [verb, ..]) if verb.eq_ignore_ascii_case(b"set") => RedisReply::Status("OK"),
        ("CONFIG", [_, names @ ..]) => {
            let port = session.port.to_string();
            let is_asked = |name: &str| names.iter().any(|own| own == b"*" || own == name.as_bytes());
            let known = [("maxmemory", "0"), ("appendonly", "no"), ("port", &port)];
            let known = known.into_iter().filter(|(name, _)| is_asked(name));
            let both = |(name, value): (&str, &str)| [Some(name.into()), Some(value.into())];
            RedisReply::Bulks(known.flat_map(both).collect())
        }
        _ => return Err(RedisWrong::Unknown),
    })
}

fn info(session: &RedisSession, store: &TextStore) -> String {
    let ends = store.keys().filter(|key| store.until(key).is_some()).count();
    let keys = match store.count() {
        0 => String::new(),
        count => format!("db0:keys={count},expires={ends},avg_ttl=0\r\n"),
    };
    format!(
        "# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\nos:Linux\r\narch_bits:64\r\n\
         process_id:1\r\ntcp_port:{}\r\n\r\n# Clients\r\nconnected_clients:1\r\nblocked_clients:0\r\n\r\n\
         # Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n# Persistence\r\nloading:0\r\n\r\n\
         # Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n\
         # Keyspace\r\n{keys}",
        session.port
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redis(said: &str) -> String {
        let (mut store, mut rest, mut heard) = (TextStore::default(), said.as_bytes(), Vec::new());
        let mut session = RedisSession::new(6380, None);
        while let Some(one) = hear(&mut session, &mut store, rest) {
            heard.extend(one.says);
            rest = &rest[one.taken..];
        }
        String::from_utf8(heard).unwrap()
    }

    #[test]
    fn texts_are_kept_as_they_are_told() {
        assert_eq!(redis("PING\r\nSET a b\r\nGET a\r\n"), "+PONG\r\n+OK\r\n$1\r\nb\r\n");
        assert_eq!(redis("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\nDEL n\r\nGET n\r\n"), ":1\r\n:1\r\n$-1\r\n");
        assert_eq!(redis("FLY a\n"), "-ERR unknown command 'FLY', with args beginning with: 'a' \r\n");
        // What is not whole waits for the rest.
        assert_eq!(redis("*2\r\n$3\r\nGET\r\n$1\r\n"), "");
        assert_eq!(
            redis("SET a 1 NX\nSET a 2 NX\nSET a 3 GET\nGET a\n"),
            "+OK\r\n$-1\r\n$1\r\n1\r\n$1\r\n3\r\n"
        );
        assert_eq!(
            redis("SET a x\nINCR a\nSET a 1 EX\n"),
            "+OK\r\n-ERR value is not an integer or out of \
            range\r\n-ERR syntax error\r\n"
        );
        assert_eq!(
            redis("MSET ab 1 b 2\nMGET b c\nKEYS a*\nDEL ab\n"),
            "+OK\r\n*2\r\n$1\r\n2\r\n$-1\r\n*1\r\n\
            $2\r\nab\r\n:1\r\n"
        );
        assert!(redis("INFO\n").contains("tcp_port:6380\r\n"));
    }

    #[test]
    fn lists_hashes_and_sets_are_of_their_kind() {
        assert_eq!(redis("RPUSH l b c\nLPUSH l a\nLLEN l\nLPOP l\n"), ":2\r\n:3\r\n:3\r\n$1\r\na\r\n");
        assert_eq!(redis("LPOP none 2\n"), "*-1\r\n");
        assert_eq!(redis("RPUSH l a b c\nRPOP l 2\nLLEN l\n"), ":3\r\n*2\r\n$1\r\nc\r\n$1\r\nb\r\n:1\r\n");
        assert_eq!(redis("SETEX k 0 v\n"), "-ERR invalid expire time in 'setex' command\r\n");
        let ranges = redis("RPUSH l a b c\nLRANGE l 0 -1\nLRANGE l -2 1\nLRANGE l 5 9\nLINDEX l -1\n");
        let all = "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n";
        assert_eq!(ranges, format!(":3\r\n{all}*1\r\n$1\r\nb\r\n*0\r\n$1\r\nc\r\n"));
        let hash = redis("HSET h a 1 b 2\nHSET h a 3\nHGET h a\nHGETALL h\nHDEL h a b\nEXISTS h\n");
        let all = "*4\r\n$1\r\na\r\n$1\r\n3\r\n$1\r\nb\r\n$1\r\n2\r\n";
        assert_eq!(hash, format!(":2\r\n:0\r\n$1\r\n3\r\n{all}:2\r\n:0\r\n"));
        assert_eq!(redis("SADD s a b a\nSISMEMBER s b\nSCARD s\nTYPE s\n"), ":2\r\n:1\r\n:2\r\n+set\r\n");
        let other = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        assert_eq!(redis("LPUSH l a\nGET l\nHSET l a b\n"), format!(":1\r\n{other}{other}"));
        assert_eq!(redis("LPUSH l\n"), "-ERR wrong number of arguments for 'lpush' command\r\n");
    }

    #[test]
    fn keys_end_when_they_are_told_to() {
        let times =
            redis("SET a 1 EX 10\nTTL a\nTTL b\nPERSIST a\nTTL a\nEXPIRE a 5\nTTL a\nSET a 2\nTTL a\n");
        assert_eq!(times, "+OK\r\n:10\r\n:-2\r\n:1\r\n:-1\r\n:1\r\n:5\r\n+OK\r\n:-1\r\n");
        assert_eq!(redis("SET a 1\nEXPIRE a 0\nGET a\nEXPIRE a 1\n"), "+OK\r\n:1\r\n$-1\r\n:0\r\n");
    }

    #[test]
    fn whoever_has_a_password_asks_for_it() {
        let mut store = TextStore::default();
        let mut session = RedisSession::new(6379, Some("pw".to_owned()));
        let mut say = |said: &str| {
            let heard = hear(&mut session, &mut store, said.as_bytes()).unwrap();
            String::from_utf8(heard.says).unwrap()
        };
        assert_eq!(say("PING\n"), "-NOAUTH Authentication required.\r\n");
        assert!(say("AUTH no\n").starts_with("-WRONGPASS "));
        assert_eq!((say("AUTH default pw\n"), say("PING\n")), ("+OK\r\n".into(), "+PONG\r\n".into()));
        assert!(redis("AUTH a\n").starts_with("-ERR AUTH <password> called without"));
    }

    #[test]
    fn no_answer_is_longer_than_its_bound() {
        let mut store = TextStore::default();
        assert!(store.set(b"k", vec![b'x'; MAX_COMMAND_BYTES]));
        let mut session = RedisSession::new(6379, None);
        let heard = hear(&mut session, &mut store, format!("MGET{}\n", " k".repeat(5)).as_bytes()).unwrap();
        assert_eq!(heard.says, b"-ERR the answer is too long\r\n");
    }
}
