//! Elements of arrays, and the functions of `awk` that fill them or change what they are given.

use super::AwkPlay;
use super::arrays::parted;
use super::syntax::{self, AwkValue};
use crate::bounds::{MAX_MEMORY_BYTES, ScriptFault};

/// Between the subscripts of one element.
const SUBSEP: &str = "\u{1c}";

impl AwkPlay<'_, '_> {
    /// The subscripts of an element as one text.
    pub(super) fn key(&mut self, subscripts: &[AwkValue]) -> String {
        let texts: Vec<String> = subscripts.iter().map(|subscript| self.value(subscript)).collect();
        texts.join(SUBSEP)
    }

    /// An element, which is there from then on.
    pub(super) fn element(&mut self, array: &str, subscripts: &[AwkValue]) -> String {
        let key = self.key(subscripts);
        let array = self.array(array);
        match self.arrays.get(&array).and_then(|elements| elements.get(&key)) {
            Some(value) => value.clone(),
            None => {
                self.put_element(&array, key, String::new());
                String::new()
            }
        }
    }

    pub(super) fn has_element(&mut self, array: &str, subscripts: &[AwkValue]) -> bool {
        let key = self.key(subscripts);
        let array = self.array(array);
        self.arrays.get(&array).is_some_and(|elements| elements.contains_key(&key))
    }

    pub(super) fn put_element(&mut self, array: &str, key: String, value: String) {
        if !self.arrays.put(array, key, value) {
            self.player.stop(ScriptFault::Memory);
        }
    }

    /// `delete a[k]`, and `delete a`.
    pub(super) fn delete(&mut self, array: &str, subscripts: Option<&[AwkValue]>) {
        let key = subscripts.map(|subscripts| self.key(subscripts));
        let array = self.array(array);
        match key {
            Some(key) => self.arrays.remove(&array, &key),
            None => self.arrays.clear(&array),
        }
    }

    /// The keys of an array as they are gone through: numbers in their order, then texts.
    pub(super) fn keys(&mut self, array: &str) -> Vec<String> {
        let array = self.array(array);
        let mut keys: Vec<String> =
            self.arrays.get(&array).into_iter().flat_map(|elements| elements.keys().cloned()).collect();
        self.player.handle(keys.iter().map(String::len).sum());
        let rank = |key: &String| key.parse::<i64>().map_or((1, 0), |number| (0, number));
        keys.sort_by_cached_key(|key| (rank(key), key.clone()));
        keys
    }

    /// `split(text, array, separator)`: how many parts there are.
    pub(super) fn split(&mut self, text: &AwkValue, array: &str, separator: Option<&AwkValue>) -> String {
        let text = self.value(text);
        self.player.handle(text.len() * 2);
        let parts: Vec<String> = match separator {
            Some(AwkValue::Pattern(pattern)) if !text.is_empty() => {
                pattern.split(&text).map(str::to_owned).collect()
            }
            Some(AwkValue::Pattern(_)) => Vec::new(),
            Some(separator) => {
                let separator = self.value(separator);
                parted(&text, &separator)
            }
            None => parted(&text, self.variables.get("FS").map_or(" ", String::as_str)),
        };
        let array = self.array(array);
        self.arrays.clear(&array);
        let count = parts.len();
        for (at, part) in parts.into_iter().enumerate() {
            self.put_element(&array, (at + 1).to_string(), part);
        }
        count.to_string()
    }

    /// `sub` and `gsub`: how often something was put in another's place.
    pub(super) fn substitute(
        &mut self,
        pattern: &AwkValue,
        replacement: &AwkValue,
        place: &AwkValue,
        is_all: bool,
    ) -> String {
        let Some(pattern) = self.pattern(pattern) else { return "0".into() };
        let replacement = self.value(replacement);
        let text = self.value(place);
        let most = if is_all { usize::MAX } else { 1 };
        let mut out = String::new();
        let mut count = 0;
        let mut end = 0;
        for found in pattern.find_iter(&text).take(most) {
            out.push_str(&text[end..found.start()]);
            out.push_str(&filled_in(&replacement, found.as_str()));
            end = found.end();
            count += 1;
            if !self.player.handle(replacement.len()) || out.len() > MAX_MEMORY_BYTES {
                self.player.stop(ScriptFault::Memory);
                return "0".into();
            }
        }
        if count > 0 {
            out.push_str(&text[end..]);
            self.put(place, out);
        }
        count.to_string()
    }

    /// `match`: where the pattern is, counted from 1; how long it is in `RLENGTH`.
    pub(super) fn matched(&mut self, text: &AwkValue, pattern: &AwkValue) -> String {
        let text = self.value(text);
        let found = self.pattern(pattern).and_then(|pattern| pattern.find(&text).map(|found| found.range()));
        let letters = |text: &str| text.chars().count();
        let start = found.as_ref().map_or(0, |found| letters(&text[..found.start]) + 1);
        let length = found.map_or("-1".into(), |found| letters(&text[found]).to_string());
        self.variables.insert("RSTART".into(), start.to_string());
        self.variables.insert("RLENGTH".into(), length);
        start.to_string()
    }

    /// A pattern as it stands, or one that is worked out.
    fn pattern(&mut self, value: &AwkValue) -> Option<regex::Regex> {
        if let AwkValue::Pattern(pattern) = value {
            return Some(pattern.clone());
        }
        let text = self.value(value);
        regex::RegexBuilder::new(&text).size_limit(syntax::MAX_PATTERN_BYTES).build().ok()
    }

    /// `length` of an array; nothing of what is none.
    pub(super) fn count_of(&mut self, value: &AwkValue) -> Option<String> {
        let AwkValue::Variable(name) = value else { return None };
        let array = self.array(name);
        self.arrays.get(&array).map(|elements| elements.len().to_string())
    }
}

/// `&` is what was found, `\&` itself.
fn filled_in(replacement: &str, found: &str) -> String {
    let mut out = String::new();
    let mut letters = replacement.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\\' if letters.peek() == Some(&'&') => out.extend(letters.next()),
            '&' => out.push_str(found),
            c => out.push(c),
        }
    }
    out
}
