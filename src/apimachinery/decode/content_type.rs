//! `mime.ParseMediaType`: what a `Content-Type` names, as far as its parameters can be read.

use std::collections::BTreeMap;

/// What no name and no value has in it that stands without quotation marks.
const SPECIAL: &str = "()<>@,;:\\\"/[]?=";

/// The media type without its parameters; nothing when one of those is malformed, or is there twice and says
/// two things.
pub(super) fn media_type(value: &str) -> Option<&str> {
    let end = value.find(';').unwrap_or(value.len());
    let (name, parameters) = value.split_at(end);
    are_parameters(parameters).then(|| name.trim())
}

fn are_parameters(text: &str) -> bool {
    let mut seen = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some((name, value, behind)) = parameter(rest) else {
            // A semicolon at the end begins nothing.
            return rest.trim() == ";";
        };
        if seen.get(&name).is_some_and(|before| *before != value) {
            return false;
        }
        seen.insert(name, value);
        rest = behind.trim_start();
    }
    true
}

/// The name, the value, and what is behind them.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.strip_prefix(';')?.trim_start())?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quotation(quoted)?,
        None => token(rest).map(|(value, rest)| (value.to_owned(), rest))?,
    };
    Some((name.to_ascii_lowercase(), value, rest))
}

fn token(text: &str) -> Option<(&str, &str)> {
    let is_of_it = |c: char| c.is_ascii_graphic() && !SPECIAL.contains(c);
    let end = text.find(|c: char| !is_of_it(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// What is before the quotation mark that ends it, and what is behind that.
fn quotation(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => return Some((value, characters.as_str())),
            '\r' | '\n' => return None,
            // Whoever writes a path of Windows escapes nothing.
            '\\' if characters.as_str().starts_with(|next: char| SPECIAL.contains(next)) => {
                value.extend(characters.next());
            }
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_names_with_values() {
        for parameters in [
            "",
            ";",
            " ; ",
            "; charset=utf-8",
            ";charset = utf-8;",
            "; a=\"\"",
            "; a=\"x;y\\\"z\" ; b=c",
            "; path=\"C:\\dir\\file\"",
            "; A=x; a=x",
            "; a*0=x; a*1=y",
        ] {
            let value = format!("application/yaml{parameters}");
            assert_eq!(media_type(&value), Some("application/yaml"), "{value}");
        }
        for parameters in [
            " ;x",
            "; ;",
            ";;a=b",
            "; a",
            "; a=",
            "; a=b c",
            "; a=b/c",
            "; =b",
            "; a=\"b",
            "; a=\"b\" c=d",
            "; a=x; A=y",
            "; a=\u{e9}",
        ] {
            assert_eq!(media_type(&format!("application/yaml{parameters}")), None, "{parameters}");
        }
        assert_eq!(media_type(" Text/Plain ;a=b"), Some("Text/Plain"));
    }
}
