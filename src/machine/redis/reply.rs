//! What redis says, and what it refuses.

use crate::text_lines::MAX_SAID_BYTES;
use crate::text_store::StoreRefusal;

/// What it says.
pub(super) enum RedisReply {
    Status(&'static str),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    /// No list.
    NilList,
    Bulks(Vec<Option<Vec<u8>>>),
}

/// What it refuses.
pub(super) enum RedisWrong {
    Arguments,
    Syntax,
    Unknown,
    Store(StoreRefusal),
    /// A line as it is said.
    Says(&'static str),
}

/// What comes of a command.
pub(super) type RedisAnswer = Result<RedisReply, RedisWrong>;

/// Texts, unless they are too many.
pub(super) fn bulks<'a>(texts: impl Iterator<Item = Option<&'a Vec<u8>>>) -> RedisAnswer {
    let mut bytes = 0;
    let mut said = Vec::new();
    for text in texts {
        bytes += 16 + text.map_or(0, Vec::len);
        if bytes > MAX_SAID_BYTES {
            return Err(RedisWrong::Says("ERR the answer is too long"));
        }
        said.push(text.cloned());
    }
    Ok(RedisReply::Bulks(said))
}

impl RedisReply {
    pub(super) fn count(count: usize) -> RedisReply {
        RedisReply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(super) fn of(text: Option<&Vec<u8>>) -> RedisReply {
        text.cloned().map_or(RedisReply::Nil, RedisReply::Bulk)
    }

    pub(super) fn encoded(&self) -> Vec<u8> {
        let bulk = |text: &Vec<u8>| [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat();
        let nil = || b"$-1\r\n".to_vec();
        match self {
            RedisReply::Status(text) => format!("+{text}\r\n").into_bytes(),
            RedisReply::Integer(number) => format!(":{number}\r\n").into_bytes(),
            RedisReply::Bulk(text) => bulk(text),
            RedisReply::Nil => nil(),
            RedisReply::NilList => b"*-1\r\n".to_vec(),
            RedisReply::Bulks(texts) => {
                let mut said = format!("*{}\r\n", texts.len()).into_bytes();
                texts.iter().for_each(|text| said.extend(text.as_ref().map_or_else(nil, bulk)));
                said
            }
        }
    }
}

impl From<StoreRefusal> for RedisWrong {
    fn from(refusal: StoreRefusal) -> RedisWrong {
        RedisWrong::Store(refusal)
    }
}

impl RedisWrong {
    /// As it is said of a command.
    pub(super) fn text(&self, name: &str, rest: &[Vec<u8>]) -> String {
        let said = match self {
            RedisWrong::Arguments => {
                let name = name.to_lowercase();
                return format!("ERR wrong number of arguments for '{name}' command");
            }
            RedisWrong::Unknown => {
                let quoted = |word: &Vec<u8>| format!("'{}' ", String::from_utf8_lossy(word));
                let words: String = rest.iter().take(8).map(quoted).collect();
                let text = format!("ERR unknown command '{name}', with args beginning with: {words}");
                return text.replace(['\r', '\n'], " ");
            }
            RedisWrong::Syntax => "ERR syntax error",
            RedisWrong::Store(StoreRefusal::OtherKind) => {
                "WRONGTYPE Operation against a key holding the wrong kind of value"
            }
            RedisWrong::Store(StoreRefusal::Full) => {
                "OOM command not allowed when used memory > 'maxmemory'."
            }
            RedisWrong::Store(StoreRefusal::NoNumber) => "ERR value is not an integer or out of range",
            RedisWrong::Says(text) => text,
        };
        said.to_owned()
    }
}
