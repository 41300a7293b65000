//! Commands of redis by the kinds of their values.

use std::time::Duration;

use super::reply::{RedisAnswer, RedisReply, RedisWrong, bulks};
use crate::interpreter::pattern;
use crate::text_lines::number;
use crate::text_store::{StoreRefusal, StoredValue, TextStore, signed};

/// So many steps are gone to compare keys with a pattern; whoever wants more is refused.
const MAX_COMPARED: usize = 50_000_000;

/// The text of a key, where there is one.
fn text_of<'a>(store: &'a TextStore, key: &[u8]) -> Result<Option<&'a Vec<u8>>, RedisWrong> {
    match store.get(key) {
        None => Ok(None),
        Some(StoredValue::Text(text)) => Ok(Some(text)),
        Some(_) => Err(StoreRefusal::OtherKind.into()),
    }
}

fn put(store: &mut TextStore, key: &[u8], text: &[u8]) -> Result<(), RedisWrong> {
    if store.set(key, text.to_vec()) { Ok(()) } else { Err(StoreRefusal::Full.into()) }
}

pub(super) fn of_texts(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    Ok(match (name, rest) {
        ("SET", [key, text, options @ ..]) => return set(store, key, text, options),
        ("GET", [key]) => RedisReply::of(text_of(store, key)?),
        ("SETEX", [key, seconds, text]) => {
            let time = signed(seconds).and_then(|seconds| u64::try_from(seconds).ok());
            let time = time.ok_or(StoreRefusal::NoNumber)?;
            if time == 0 {
                return Err(RedisWrong::Says("ERR invalid expire time in 'setex' command"));
            }
            put(store, key, text)?;
            store.keep_for(key, Some(Duration::from_secs(time)));
            RedisReply::Status("OK")
        }
        ("SETNX", [key, _]) if store.get(key).is_some() => RedisReply::Integer(0),
        ("SETNX", [key, text]) => {
            put(store, key, text)?;
            RedisReply::Integer(1)
        }
        ("GETSET", [key, text]) => {
            let old = RedisReply::of(text_of(store, key)?);
            put(store, key, text)?;
            old
        }
        ("GETDEL", [key]) => {
            let old = RedisReply::of(text_of(store, key)?);
            store.remove(key);
            old
        }
        ("MSET", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
            for pair in pairs.chunks_exact(2) {
                put(store, &pair[0], &pair[1])?;
            }
            RedisReply::Status("OK")
        }
        ("MGET", keys) if !keys.is_empty() => bulks(keys.iter().map(|key| store.text(key)))?,
        ("APPEND", [key, more]) => {
            let whole = [text_of(store, key)?.map_or(&[][..], Vec::as_slice), more].concat();
            let until = store.until(key);
            put(store, key, &whole)?;
            store.keep_until(key, until);
            RedisReply::count(whole.len())
        }
        ("STRLEN", [key]) => RedisReply::count(text_of(store, key)?.map_or(0, Vec::len)),
        _ => return Err(RedisWrong::Arguments),
    })
}

fn set(store: &mut TextStore, key: &[u8], text: &[u8], options: &[Vec<u8>]) -> RedisAnswer {
    let mut time = None;
    let mut keeps = false;
    let mut gets = false;
    let mut wanted = None;
    let mut options = options.iter().map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
    while let Some(option) = options.next() {
        match option.as_str() {
            "EX" | "PX" => {
                let count = options.next().ok_or(RedisWrong::Syntax)?;
                let count: i64 = count.parse().map_err(|_| StoreRefusal::NoNumber)?;
                let count = u64::try_from(count).ok().filter(|count| *count > 0);
                let count = count.ok_or(RedisWrong::Says("ERR invalid expire time in 'set' command"))?;
                time = Some(if option == "EX" {
                    Duration::from_secs(count)
                } else {
                    Duration::from_millis(count)
                });
            }
            "KEEPTTL" => keeps = true,
            "GET" => gets = true,
            "NX" => wanted = Some(false),
            "XX" => wanted = Some(true),
            _ => return Err(RedisWrong::Syntax),
        }
    }
    let old = if gets { Some(RedisReply::of(text_of(store, key)?)) } else { None };
    if wanted.is_some_and(|wanted| wanted != store.get(key).is_some()) {
        return Ok(old.unwrap_or(RedisReply::Nil));
    }
    let until = store.until(key).filter(|_| keeps);
    put(store, key, text)?;
    match time {
        Some(time) => store.keep_for(key, Some(time)),
        None => store.keep_until(key, until),
    }
    Ok(old.unwrap_or(RedisReply::Status("OK")))
}

pub(super) fn counted(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    let (key, count) = match (name, rest) {
        ("INCR" | "DECR", [key]) => (key, Some(1)),
        ("INCRBY" | "DECRBY", [key, count]) => (key, signed(count)),
        _ => return Err(RedisWrong::Arguments),
    };
    let sign = if name.starts_with("DECR") { -1 } else { 1 };
    let count = count.and_then(|count| count.checked_mul(sign)).ok_or(StoreRefusal::NoNumber)?;
    Ok(RedisReply::Integer(store.add(key, count)?))
}

pub(super) fn of_lists(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    let (key, words) = rest.split_first().ok_or(RedisWrong::Arguments)?;
    if !matches!(store.get(key), None | Some(StoredValue::List(_))) {
        return Err(StoreRefusal::OtherKind.into());
    }
    let length = match store.get(key) {
        Some(StoredValue::List(list)) => list.len(),
        _ => 0,
    };
    // From the end where it is negative.
    let place = |word: &[u8]| {
        let at = signed(word).ok_or(StoreRefusal::NoNumber)?;
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        Ok::<i64, RedisWrong>(if at < 0 { at.saturating_add(length) } else { at })
    };
    let part = |from: i64, to: i64| {
        let list = match store.get(key) {
            Some(StoredValue::List(list)) => Some(list.iter()),
            _ => None,
        };
        let from = usize::try_from(from).unwrap_or(0);
        let end = usize::try_from(to.saturating_add(1)).unwrap_or(0);
        list.into_iter().flatten().skip(from).take(end.saturating_sub(from))
    };
    Ok(match (name, words) {
        ("LPUSH" | "RPUSH", [_, ..]) => {
            let list = store.list(key, words)?;
            for word in words {
                if name == "LPUSH" { list.push_front(word.clone()) } else { list.push_back(word.clone()) }
            }
            RedisReply::count(list.len())
        }
        ("LPOP" | "RPOP", []) => store.pop(key, name == "LPOP").map_or(RedisReply::Nil, RedisReply::Bulk),
        ("LPOP" | "RPOP", [count]) => {
            let count = number(count).ok_or(StoreRefusal::NoNumber)?;
            if length == 0 {
                return Ok(RedisReply::NilList);
            }
            // Nothing is taken away that is not said.
            let (from, to) = if name == "LPOP" { (0, count) } else { (length.saturating_sub(count), length) };
            let end = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
            bulks(part(end(from), end(to).saturating_sub(1)).map(Some))?;
            let popped = (0..count).map_while(|_| store.pop(key, name == "LPOP"));
            RedisReply::Bulks(popped.map(Some).collect())
        }
        ("LLEN", []) => RedisReply::count(length),
        ("LRANGE", [from, to]) => bulks(part(place(from)?, place(to)?).map(Some))?,
        ("LINDEX", [at]) => {
            let at = place(at)?;
            RedisReply::of(part(at, at).next().filter(|_| at >= 0))
        }
        _ => return Err(RedisWrong::Arguments),
    })
}

pub(super) fn of_hashes(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    let (key, words) = rest.split_first().ok_or(RedisWrong::Arguments)?;
    let hash = match store.get(key) {
        None => None,
        Some(StoredValue::Hash(hash)) => Some(hash),
        Some(_) => return Err(StoreRefusal::OtherKind.into()),
    };
    let all = || hash.into_iter().flatten();
    let field = |field: &Vec<u8>| hash.and_then(|hash| hash.get(field));
    Ok(match (name, words) {
        ("HSET" | "HMSET", pairs) if !pairs.is_empty() && pairs.len().is_multiple_of(2) => {
            let mut made = 0;
            for pair in pairs.chunks_exact(2) {
                made += i64::from(store.set_field(key, &pair[0], &pair[1])?);
            }
            if name == "HSET" { RedisReply::Integer(made) } else { RedisReply::Status("OK") }
        }
        ("HSETNX", [own, _]) if field(own).is_some() => RedisReply::Integer(0),
        ("HSETNX", [own, text]) => RedisReply::Integer(i64::from(store.set_field(key, own, text)?)),
        ("HGET", [own]) => RedisReply::of(field(own)),
        ("HMGET", [_, ..]) => bulks(words.iter().map(field))?,
        ("HGETALL", []) => bulks(all().flat_map(|(field, text)| [Some(field), Some(text)]))?,
        ("HKEYS", []) => bulks(all().map(|(field, _)| Some(field)))?,
        ("HVALS", []) => bulks(all().map(|(_, text)| Some(text)))?,
        ("HLEN", []) => RedisReply::count(all().count()),
        ("HEXISTS", [own]) => RedisReply::count(usize::from(field(own).is_some())),
        ("HDEL", [_, ..]) => {
            RedisReply::count(words.iter().filter(|own| store.remove_part(key, own)).count())
        }
        _ => return Err(RedisWrong::Arguments),
    })
}

pub(super) fn of_sets(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    let (key, words) = rest.split_first().ok_or(RedisWrong::Arguments)?;
    let members = match store.get(key) {
        None => None,
        Some(StoredValue::Members(members)) => Some(members),
        Some(_) => return Err(StoreRefusal::OtherKind.into()),
    };
    Ok(match (name, words) {
        ("SADD", [_, ..]) => {
            let mut added = 0;
            for word in words {
                added += i64::from(store.add_member(key, word)?);
            }
            RedisReply::Integer(added)
        }
        ("SREM", [_, ..]) => {
            RedisReply::count(words.iter().filter(|own| store.remove_part(key, own)).count())
        }
        ("SMEMBERS", []) => bulks(members.into_iter().flatten().map(Some))?,
        ("SISMEMBER", [own]) => {
            RedisReply::count(usize::from(members.is_some_and(|members| members.contains(own))))
        }
        ("SCARD", []) => RedisReply::count(members.map_or(0, |members| members.len())),
        _ => return Err(RedisWrong::Arguments),
    })
}

pub(super) fn of_times(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    let (key, words) = rest.split_first().ok_or(RedisWrong::Arguments)?;
    let is_there = store.get(key).is_some();
    let whole = |count: u128| i64::try_from(count).unwrap_or(i64::MAX);
    Ok(RedisReply::Integer(match (name, words) {
        ("EXPIRE" | "PEXPIRE", [count]) => {
            let count = signed(count).ok_or(StoreRefusal::NoNumber)?;
            match u64::try_from(count) {
                Ok(count) if count > 0 => {
                    let is_milli = name == "PEXPIRE";
                    let time =
                        if is_milli { Duration::from_millis(count) } else { Duration::from_secs(count) };
                    store.keep_for(key, Some(time));
                }
                // It is over.
                _ => {
                    store.remove(key);
                }
            }
            i64::from(is_there)
        }
        ("TTL" | "PTTL", []) if !is_there => -2,
        ("TTL", []) => store.left(key).map_or(-1, |left| whole((left.as_millis() + 500) / 1000)),
        ("PTTL", []) => store.left(key).map_or(-1, |left| whole(left.as_millis())),
        ("PERSIST", []) => {
            let had_end = store.until(key).is_some();
            store.keep_for(key, None);
            i64::from(had_end)
        }
        _ => return Err(RedisWrong::Arguments),
    }))
}

pub(super) fn of_keys(store: &mut TextStore, name: &str, rest: &[Vec<u8>]) -> RedisAnswer {
    Ok(match (name, rest) {
        ("DEL" | "UNLINK", [_, ..]) => RedisReply::count(rest.iter().filter(|key| store.remove(key)).count()),
        ("EXISTS", [_, ..]) => RedisReply::count(rest.iter().filter(|key| store.get(key).is_some()).count()),
        ("TYPE", [key]) => RedisReply::Status(store.get(key).map_or("none", StoredValue::kind)),
        ("KEYS", [wanted]) => {
            let wanted = String::from_utf8_lossy(wanted);
            let mut found = Vec::new();
            let mut compared = 0;
            for key in store.keys() {
                let (fits, steps) = pattern::compare(&wanted, &String::from_utf8_lossy(key));
                compared += steps;
                if compared > MAX_COMPARED {
                    return Err(RedisWrong::Says("ERR this takes too long here"));
                }
                found.extend(fits.then_some(Some(key)));
            }
            bulks(found.into_iter())?
        }
        ("RENAME", [key, to]) if store.rename(key, to) => RedisReply::Status("OK"),
        ("RENAME", [_, _]) => return Err(RedisWrong::Says("ERR no such key")),
        ("DBSIZE", []) => RedisReply::count(store.count()),
        ("FLUSHALL" | "FLUSHDB", _) => {
            store.clear();
            RedisReply::Status("OK")
        }
        _ => return Err(RedisWrong::Arguments),
    })
}
