//! Versions as the library of upstream reads them (`github.com/blang/semver`).

use std::cmp::Ordering;

use golang::go_text::quote;

golang::text_error! {
    /// What is no semantic version; in the words of upstream's library.
    pub(super) struct BadSemver;
}

/// `semver.Version`. What was built is no part of its order, nor of its equality.
#[derive(Clone, Debug)]
pub struct Semver {
    /// Major, minor and patch.
    pub(super) numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    /// Before all texts.
    Number(u64),
    Text(String),
}

impl PartialEq for Semver {
    fn eq(&self, other: &Semver) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Semver {
    /// Reads a version; none unless it is written as it must be.
    pub fn read(text: &str) -> Option<Semver> {
        Semver::parse(text).ok()
    }

    pub(super) fn parse(text: &str) -> Result<Semver, BadSemver> {
        if text.is_empty() {
            return Err("Version string empty".into());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts[..] else {
            return Err("No Major.Minor.Patch elements found".into());
        };
        let major = number("major", major)?;
        let minor = number("minor", minor)?;
        let (rest, build) = split(rest, '+');
        let (patch, prerelease) = split(rest, '-');
        let patch = number("patch", patch)?;
        let prerelease = prerelease.map(|text| text.split('.').map(identifier).collect::<Result<_, _>>());
        let prerelease = prerelease.transpose()?.unwrap_or_default();
        build.into_iter().flat_map(|build| build.split('.')).try_for_each(check_build)?;
        Ok(Semver { numbers: [major, minor, patch], prerelease })
    }

    /// With a `v` before it, without minor or patch, with zeros before its numbers.
    pub(super) fn parse_tolerantly(text: &str) -> Result<Semver, BadSemver> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".into());
        }
        parts.resize(3, "0".to_owned());
        Semver::parse(&parts.join("."))
    }

    pub(super) fn compare(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.prerelease[..], &other.prerelease[..]) {
            ([], []) => Ordering::Equal,
            ([], _) => Ordering::Greater,
            (_, []) => Ordering::Less,
            (left, right) => left.cmp(right),
        })
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(head, rest)| (head, Some(rest)))
}

fn without_zeros(part: &str) -> String {
    let trimmed = part.trim_start_matches('0');
    if part.len() < 2 {
        part.to_owned()
    } else if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        trimmed.to_owned()
    } else {
        format!("0{trimmed}")
    }
}

fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    if !is_numeric(text) {
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if has_leading_zero(text) {
        let (first, rest) = name.split_at(1);
        let name = first.to_ascii_uppercase() + rest;
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    parse_uint(text)
}

fn parse_uint(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if !is_numeric(text) {
        return if is_alphanumeric(text) {
            Ok(Identifier::Text(text.to_owned()))
        } else {
            Err(format!("Invalid character(s) found in prerelease {}", quote(text)))
        };
    }
    if has_leading_zero(text) {
        return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
    }
    parse_uint(text).map(Identifier::Number)
}

fn check_build(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if is_alphanumeric(text) {
        return Ok(());
    }
    Err(format!("Invalid character(s) found in build meta data {}", quote(text)))
}
