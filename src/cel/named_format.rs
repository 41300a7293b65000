//! The formats of `format.dns1123Label()` and its siblings (`k8s.io/apiserver/pkg/cel/library/format.go`).

use std::sync::LazyLock;

use apimachinery::names;
use chrono::NaiveDate;
use golang::base64_text;
use regex::Regex;

use super::url;

/// `apiservercel.Format`
pub struct NamedFormat {
    /// As `format.named` knows it.
    name: &'static str,
    /// What checking it is charged for: `MaxRegexSize`.
    pub(super) pattern_length: u64,
    validate: fn(&str) -> Vec<String>,
}

impl PartialEq for NamedFormat {
    fn eq(&self, other: &NamedFormat) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for NamedFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn format(name: &'static str, pattern_length: u64, validate: fn(&str) -> Vec<String>) -> NamedFormat {
    NamedFormat { name, pattern_length, validate }
}

static FORMATS: [NamedFormat; 13] = [
    format("dns1123Label", 30, names::dns1123_label),
    format("dns1123Subdomain", 60, names::dns1123_subdomain),
    format("dns1035Label", 30, names::dns1035_label),
    format("qualifiedName", 60, names::qualified_name),
    format("dns1123LabelPrefix", 30, |text| names::dns1123_label(&masked(text))),
    format("dns1123SubdomainPrefix", 60, |text| names::dns1123_subdomain(&masked(text))),
    format("dns1035LabelPrefix", 30, |text| names::dns1035_label(&masked(text))),
    format("labelValue", 40, names::label_value),
    format("uri", 1_103, |text| url::check(text).err().into_iter().map(String::from).collect()),
    format("uuid", 70, |text| told(UUID.is_match(text), "does not match the UUID format")),
    format("byte", 84, |text| told(is_some_base64(text), "invalid base64")),
    format("date", 71, |text| told(is_date(text), "invalid date")),
    format("datetime", 71, |text| told(is_date_time(text), "invalid datetime")),
];

/// A constant that is made when it is first needed.
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    Regex::new(pattern).expect("it is a pattern")
});

/// `strfmt.DateTimePattern`, of the time alone.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    Regex::new(pattern).expect("it is a pattern")
});

impl NamedFormat {
    pub(super) fn named(name: &str) -> Option<&'static NamedFormat> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// What is wrong with a text; nothing if it is right.
    pub(super) fn validate(&self, text: &str) -> Vec<String> {
        (self.validate)(text)
    }
}

fn told(is_right: bool, what: &str) -> Vec<String> {
    if is_right { vec![] } else { vec![what.to_owned()] }
}

/// `maskTrailingDash`: something will follow, so that the dash is not the last.
fn masked(name: &str) -> String {
    match name.strip_suffix('-').filter(|head| !head.is_empty()) {
        Some(head) => {
            let mut head: String = head.chars().collect();
            head.pop();
            head + "a"
        }
        None => name.to_owned(),
    }
}

/// `govalidator.IsBase64`: whole groups, at least one.
fn is_some_base64(text: &str) -> bool {
    !text.is_empty() && base64_text::is_base64(text)
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let number = |text: &str, width: usize| -> Option<u32> {
        let fits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| fits)
    };
    match (number(year, 4), number(month, 2), number(day, 2)) {
        (Some(year), Some(month), Some(day)) => NaiveDate::from_ymd_opt(year as i32, month, day).is_some(),
        _ => false,
    }
}

/// `strfmt.IsDateTime`
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let Some((date, rest)) = text.split_once('t') else { return false };
    let time = rest.split('t').next().unwrap_or_default();
    let in_range = |found: regex::Captures<'_>| &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59";
    is_date(date) && TIME.captures(time).is_some_and(in_range)
}
