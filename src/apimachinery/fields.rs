//! Field selectors (`k8s.io/apimachinery/pkg/fields`): equalities on the few fields that a kind declares.

use std::fmt;

use super::labels::BadSelector;

/// One equality or inequality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// As `spec.nodeName`.
    pub field: String,
    /// `=` when true, `!=` when false.
    pub equal: bool,
    /// The value compared with.
    pub value: String,
}

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// In the order given.
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// One equality.
    pub fn equal(field: &str, value: &str) -> FieldSelector {
        let requirement = FieldRequirement { field: field.into(), equal: true, value: value.into() };
        FieldSelector { requirements: vec![requirement] }
    }

    /// Reads the query parameter's form: `spec.nodeName=a,status.phase!=Running`; `\`, `,` and `=` are
    /// escaped by `\`.
    pub fn parse(text: &str) -> Result<FieldSelector, BadSelector> {
        let terms = split_terms(text);
        let requirements: Result<_, _> =
            terms.iter().filter(|term| !term.is_empty()).map(|term| parse_term(term, text)).collect();
        Ok(FieldSelector { requirements: requirements? })
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it matches, where `value_of` gives a field's value; a field without a value is empty.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |requirement: &FieldRequirement| {
            (value_of(&requirement.field).unwrap_or_default() == requirement.value) == requirement.equal
        };
        self.requirements.iter().all(holds)
    }

    /// The value that `field` must have, if the selector says so.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        let fixed = |requirement: &&FieldRequirement| requirement.equal && requirement.field == field;
        self.requirements.iter().find(fixed).map(|requirement| requirement.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = |requirement: &FieldRequirement| {
            let operator = if requirement.equal { "=" } else { "!=" };
            format!("{}{operator}{}", requirement.field, escape(&requirement.value))
        };
        let terms: Vec<String> = self.requirements.iter().map(term).collect();
        f.write_str(&terms.join(","))
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        terms.last_mut().expect("starts with one").push(c);
    }
    terms
}

fn parse_term(term: &str, whole: &str) -> Result<FieldRequirement, String> {
    let invalid = || format!("invalid selector: '{whole}'; can't understand '{term}'");
    let at = term.find(['=', '!']).ok_or_else(invalid)?;
    let (field, rest) = term.split_at(at);
    let (equal, value) = match rest {
        _ if rest.starts_with("!=") => (false, &rest[2..]),
        _ if rest.starts_with("==") => (true, &rest[2..]),
        _ if rest.starts_with('=') => (true, &rest[1..]),
        _ => return Err(invalid()),
    };
    Ok(FieldRequirement { field: field.into(), equal, value: unescape(value)? })
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(other) => {
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
                None => return Err("invalid field selector: unterminated escape sequence".into()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            c => out.push(c),
        }
    }
    Ok(out)
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equalities_are_read_and_matched() {
        let selector = FieldSelector::parse("a.b=1,c!=2,d==x\\,y").unwrap();
        let value_of = |field: &str| match field {
            "a.b" => Some("1"),
            "d" => Some("x,y"),
            _ => None,
        };
        assert!(selector.matches(value_of));
        assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        assert!(FieldSelector::parse("a").is_err());
        assert!(FieldSelector::parse("a=b=c").is_err());
    }
}
