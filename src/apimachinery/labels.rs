//! Label selectors (`k8s.io/apimachinery/pkg/labels`): the text form of the query parameter and the form in
//! specs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::names;
use super::object::nullable;
use golang::go_text;

golang::text_error! {
    /// What is no selector of labels or fields; in upstream's words.
    pub struct BadSelector;
}

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How its value is compared.
    pub operator: Operator,
    /// With what; sorted.
    pub values: Vec<String>,
}

/// `selection.Operator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// `=`
    Equals,
    /// `!=`: also true of an object without the label.
    NotEquals,
    /// `in (a,b)`
    In,
    /// `notin (a,b)`: also true of an object without the label.
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `>`, integers
    GreaterThan,
    /// `<`, integers
    LessThan,
}

/// All requirements must hold; without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Sorted by key.
    pub requirements: Vec<Requirement>,
    /// Upstream's `labels.Nothing()`: what a null selector in a spec means.
    nothing: bool,
}

/// `metav1.LabelSelector`, as it stands in specs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels with the values that they must have.
    #[serde(deserialize_with = "nullable")]
    pub match_labels: BTreeMap<String, String>,
    /// Labels with conditions on their values.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// `metav1.LabelSelectorRequirement`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The label's key.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`.
    pub operator: String,
    /// The set.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// As Go writes a pointer to one (`String` of generated code), in messages.
    pub fn go_string(&self) -> String {
        let labels: String =
            self.match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
        let expression = |it: &LabelSelectorRequirement| {
            let LabelSelectorRequirement { key, operator, values } = it;
            let values = values.join(" ");
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        };
        let expressions: String = self.match_expressions.iter().map(expression).collect();
        format!(
            "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
             MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
        )
    }

    /// `metav1.LabelSelectorAsSelector`; an unknown operator is an error, an empty selector matches
    /// everything.
    pub fn selector(&self) -> Result<Selector, BadSelector> {
        let mut selector = Selector::from_labels(&self.match_labels);
        for expression in &self.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{other:?} is not a valid label selector operator").into()),
            };
            selector.requirements.push(Requirement::new(
                &expression.key,
                operator,
                expression.values.clone(),
            )?);
        }
        selector.requirements.sort();
        Ok(selector)
    }
}

impl Requirement {
    /// Checks the key, the values and how many there are.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Requirement, BadSelector> {
        if let Some(error) = names::qualified_name(key).first() {
            return Err(format!("key: Invalid value: {key:?}: {error}").into());
        }
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                return Err(
                    "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                        .into(),
                );
            }
            Operator::GreaterThan | Operator::LessThan
                if values.len() != 1 || values[0].parse::<i64>().is_err() =>
            {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                let shown = values.first().map(|value| format!("{}: ", go_text::quote(value)));
                return Err(format!("values[0]: Invalid value: {}{why}", shown.unwrap_or_default()).into());
            }
            _ => {}
        }
        for value in &values {
            if let Some(error) = names::label_value(value).first() {
                return Err(format!("values[0][{key}]: Invalid value: {value:?}: {error}").into());
            }
        }
        values.sort();
        values.dedup();
        Ok(Requirement { key: key.into(), operator, values })
    }

    /// Whether `labels` satisfy it.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let among = |value: &String| self.values.contains(value);
        let number = |text: &String| text.parse::<i64>().ok();
        let compare = |holds: fn(&i64, &i64) -> bool| {
            let bound = self.values.first().and_then(number);
            value.and_then(number).zip(bound).is_some_and(|(value, bound)| holds(&value, &bound))
        };
        match self.operator {
            Operator::Equals | Operator::In => value.is_some_and(among),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(among),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compare(i64::gt),
            Operator::LessThan => compare(i64::lt),
        }
    }
}

impl Selector {
    /// Matches every object.
    pub fn everything() -> Selector {
        Selector::default()
    }

    /// Matches no object.
    pub fn nothing() -> Selector {
        Selector { nothing: true, ..Selector::default() }
    }

    /// Every label as given (`labels.SelectorFromSet`).
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Selector {
        let equals = |(key, value): (&String, &String)| Requirement {
            key: key.clone(),
            operator: Operator::Equals,
            values: vec![value.clone()],
        };
        Selector { requirements: labels.iter().map(equals).collect(), nothing: false }
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// A label and the only value of it that matches, if it wants one.
    pub fn one_value(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match requirement.values.as_slice() {
            [value] if matches!(requirement.operator, Operator::Equals | Operator::In) => {
                Some((&*requirement.key, &**value))
            }
            _ => None,
        })
    }

    /// Whether `labels` satisfy it.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// Reads the query parameter's form: `a=b,c!=d,e in (f,g),h,!i,j>1`.
    pub fn parse(text: &str) -> Result<Selector, BadSelector> {
        let mut parser = SelectorParser { rest: text };
        let mut requirements = Vec::new();
        parser.skip_blanks();
        while !parser.rest.is_empty() {
            let requirement = parser.requirement();
            // A key is looked at before it has a place.
            let named = |error: BadSelector| match error.0.strip_prefix("key: ") {
                Some(rest) => format!("unable to parse requirement: <nil>: {rest}"),
                None => format!("unable to parse requirement: {error}"),
            };
            requirements.push(requirement.map_err(named)?);
            match parser.token().as_str() {
                "" => break,
                "," if !parser.at_end() => {}
                "," => return Err("found '', expected: identifier after ','".into()),
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'").into()),
            }
        }
        requirements.sort();
        Ok(Selector { requirements, nothing: false })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.requirements.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Upstream's recursive descent over the same tokens.
struct SelectorParser<'a> {
    rest: &'a str,
}

impl SelectorParser<'_> {
    fn requirement(&mut self) -> Result<Requirement, BadSelector> {
        let first = self.token();
        if first == "!" {
            let key = self.identifier("identifier")?;
            return Requirement::new(&key, Operator::DoesNotExist, vec![]);
        }
        if !is_identifier(&first) {
            return Err(format!("found '{first}', expected: !, identifier, or ','").into());
        }
        if matches!(self.peek().as_str(), "" | ",") {
            return Requirement::new(&first, Operator::Exists, vec![]);
        }
        let operator = match self.token().as_str() {
            "=" | "==" => Operator::Equals,
            "!=" => Operator::NotEquals,
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt").into()),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(&first, operator, values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek().as_str() {
            "" | "," => Ok(String::new()),
            _ => self.identifier("identifier"),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.token();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        loop {
            match self.token().as_str() {
                ")" => break,
                "," => {
                    if matches!(self.peek().as_str(), "," | ")") {
                        values.push(String::new());
                    }
                }
                word if is_identifier(word) => values.push(word.to_owned()),
                other => return Err(format!("found '{other}', expected: ',', or identifier")),
            }
        }
        if values.is_empty() {
            values.push(String::new());
        }
        Ok(values)
    }

    fn identifier(&mut self, what: &str) -> Result<String, String> {
        let word = self.token();
        if is_identifier(&word) { Ok(word) } else { Err(format!("found '{word}', expected: {what}")) }
    }

    fn token(&mut self) -> String {
        self.skip_blanks();
        let operators = ["==", "!=", "=", "!", ",", "(", ")", ">", "<"];
        let length = match operators.iter().find(|operator| self.rest.starts_with(**operator)) {
            Some(operator) => operator.len(),
            None => {
                let special = |c: char| c.is_whitespace() || "=!,()><".contains(c);
                self.rest.find(special).unwrap_or(self.rest.len())
            }
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        token.to_owned()
    }

    fn peek(&mut self) -> String {
        SelectorParser { rest: self.rest }.token()
    }

    fn at_end(&mut self) -> bool {
        self.peek().is_empty()
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

fn is_identifier(word: &str) -> bool {
    !word.is_empty() && !word.starts_with(|c: char| "=!,()><".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn the_text_form_selects_as_upstream() {
        let web = labels(&[("app", "web"), ("tier", "front"), ("n", "5")]);
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=back", true),
            ("app in (api, web)", true),
            ("app notin (api)", true),
            ("app notin (web)", false),
            ("zone notin (web)", true),
            ("zone!=a", true),
            ("app", true),
            ("!app", false),
            ("!zone", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("app=", false),
        ];
        for (text, matches) in cases {
            assert_eq!(Selector::parse(text).unwrap().matches(&web), matches, "{text}");
        }
    }

    #[test]
    fn bad_selectors_say_what_was_found() {
        for text in ["a,", "=b", "a in", "a in b", "a b", "a=b c", "a in (b", "a>x", "Bad Key=1", ",a"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_selector_prints_as_it_is_read() {
        for text in ["a=b", "a in (b,c)", "!a", "a notin (x),b!=c", "a>1"] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector, "{text}");
        }
    }
}
