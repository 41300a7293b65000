//! What a call costs when it runs (`interpreter/runtimecost.go`, `k8s.io/apiserver/pkg/cel/library/cost.go`).
//!
//! What upstream charges by overload is charged only where the checker knows which one is meant: a call with
//! arguments that may be of any type costs one unit, as does every function that is not named here.

use super::opaque::Opaque;
use super::types::Type;
use super::value::Value;

const TEXT: f64 = 0.1;
const REGEX: f64 = 0.25;
/// Making a list.
pub(super) const LIST: u64 = 10;
/// A requirement of a selector is a struct and a list of values.
const REQUIREMENT: f64 = 50.0;
/// So that two questions to the authorizer are allowed in one expression.
const CHECK: u64 = 350_000;

/// Units for copying that are not asked for: below that, a `+` costs what it costs upstream.
const FREE_COPYING: u64 = 1_000;

/// A call; its target is its first argument. An argument that failed has no value.
pub(super) struct Called<'a> {
    pub function: &'a str,
    pub is_member: bool,
    pub types: &'a [&'a Type],
    pub values: &'a [Option<Value>],
}

impl Called<'_> {
    /// The cost, where it does not depend on what comes out.
    pub(super) fn before(&self) -> Option<u64> {
        (!matches!(self.function, "join" | "slice" | "lists.range" | "reverse")).then(|| self.cost(1))
    }

    /// The cost of copying both sides of a `+` that upstream has for one unit. What doubles with every step
    /// would otherwise outgrow all memory within its budget.
    pub(super) fn copying(&self) -> u64 {
        let ("_+_", [Some(left), Some(right)]) = (self.function, self.values) else { return 0 };
        let size = length(left).saturating_add(length(right));
        let cost = match (left, right) {
            (Value::List(_), Value::List(_)) => size,
            (Value::String(_) | Value::Bytes(_), _) if !self.is_of_texts() => times(size, TEXT),
            _ => 0,
        };
        if cost > FREE_COPYING { cost } else { 0 }
    }

    /// The cost of what came out.
    pub(super) fn after(&self, result: Option<&Value>) -> u64 {
        self.cost(result.map_or(1, length))
    }

    fn cost(&self, result: u64) -> u64 {
        match (self.function, self.values.len()) {
            ("check", _) => CHECK,
            ("fieldSelector" | "labelSelector", 2..) => {
                let selector = self.length(1);
                LIST + times(selector, TEXT) + times(times(selector, 0.5), REQUIREMENT)
            }
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", 1..) => {
                self.values[0].as_ref().map_or(1, traversal)
            }
            (
                "url"
                | "lowerAscii"
                | "upperAscii"
                | "substring"
                | "trim"
                | "jsonpatch.escapeKey"
                | "cidr"
                | "isIP"
                | "isCIDR"
                | "quantity"
                | "isQuantity"
                | "semver"
                | "isSemver",
                1..,
            ) => times(self.length(0), TEXT),
            ("ip", 1..) if !self.is_member => times(self.length(0), TEXT),
            ("replace" | "split" | "ip.isCanonical", 1..) => twice(self.length(0)),
            ("join", 1..) => twice(result),
            ("find" | "findAll", 2..) => self.matching(times(self.length(1), REGEX)),
            ("matches", 2) if self.is_member => self.matching(times(self.length(1), REGEX)),
            ("validate", 2) => self.values[0]
                .as_ref()
                .and_then(pattern_length)
                .map_or(1, |pattern| times(self.length(1) + 1, TEXT).saturating_mul(times(pattern, REGEX))),
            ("containsIP" | "containsCIDR", 2) => self.containment(),
            ("contains", 2) => times(self.length(0), TEXT).saturating_mul(times(self.length(1), TEXT)),
            ("startsWith" | "endsWith" | "strings.quote" | "format", 1..) => times(self.length(0), TEXT),
            ("string", 1) if matches!(self.types[0], Type::Bytes) => times(self.length(0), TEXT),
            ("bytes", 1) if matches!(self.types[0], Type::String) => times(self.length(0), TEXT),
            ("@in", 2) if matches!(self.types[1], Type::List(_)) => self.length(1),
            ("_==_", 2) if matches!(self.values[0], Some(Value::Opaque(_) | Value::Host(_))) => 1,
            ("_==_" | "_!=_", 2) => times(self.held_length(0).min(self.held_length(1)), TEXT),
            ("_<_" | "_<=_" | "_>_" | "_>=_", 2) if self.is_of_texts() => {
                times(self.length(0).min(self.length(1)), TEXT)
            }
            ("_+_", 2) if self.is_of_texts() => times(self.length(0) + self.length(1), TEXT),
            ("slice" | "lists.range" | "reverse", _) => LIST + 1 + result,
            ("flatten", _) => {
                let depth = self.values.get(1).and_then(Option::as_ref).map_or(1.0, |depth| match depth {
                    Value::Int(depth) if *depth >= 0 => *depth as f64,
                    _ => 1.0,
                });
                LIST + 1 + (self.length(0) as f64 * depth) as u64
            }
            ("distinct", 1) => comparing(self.values[0].as_ref()),
            ("sort", 1) if is_ordered(self.types[0]) => comparing(self.values[0].as_ref()),
            ("sets.contains" | "sets.intersects", 2) => 1 + self.length(0).saturating_mul(self.length(1)),
            ("sets.equivalent", 2) => 1 + self.length(0).saturating_mul(self.length(1)).saturating_mul(2),
            _ => 1,
        }
    }

    fn length(&self, at: usize) -> u64 {
        self.values[at].as_ref().map_or(1, length)
    }

    /// What an optional holds counts.
    fn held_length(&self, at: usize) -> u64 {
        match &self.values[at] {
            Some(Value::Optional(Some(inner))) => length(inner),
            other => other.as_ref().map_or(1, length),
        }
    }

    fn is_of_texts(&self) -> bool {
        self.types.iter().any(|of| matches!(of, Type::String | Type::Bytes))
    }

    fn matching(&self, pattern: u64) -> u64 {
        times(self.length(0) + 1, TEXT).saturating_mul(pattern)
    }

    /// The addresses are compared; one that is a text has to be read first.
    fn containment(&self) -> u64 {
        let network = self.length(0);
        let masking = if self.function == "containsCIDR" { times(network, TEXT) + 1 } else { 0 };
        let reading = if matches!(self.types[1], Type::String) { times(self.length(1), TEXT) } else { 0 };
        times(network + network, TEXT) + masking + reading
    }
}

/// Comparing everything in a list with everything: sorting, finding what is there twice.
pub(super) fn comparing(list: Option<&Value>) -> u64 {
    let Some(Value::List(list)) = list else { return LIST + 1 };
    let factor = match list.items.first() {
        Some(Value::String(_) | Value::Bytes(_)) => 2.0 + TEXT,
        _ => 2.0,
    };
    let count = list.items.len() as u64;
    LIST + 1 + (count.saturating_mul(count) as f64 * factor) as u64
}

/// Whether it is known of what a list is, so that it is known how it is sorted.
pub(super) fn is_ordered(list: &Type) -> bool {
    matches!(list, Type::List(item) if !matches!(**item, Type::Dyn))
}

/// `traits.Sizer`; what has no size counts as one.
fn length(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.items.len() as u64,
        Value::Map(map) => map.len() as u64,
        Value::Opaque(of) => of.length(),
        _ => 1,
    }
}

/// Going through a value and all that is in it.
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * TEXT) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TEXT) as u64,
        Value::List(list) => list.items.iter().map(traversal).sum(),
        Value::Map(map) => {
            map.entries.iter().map(|(key, value)| traversal(&key.value()) + traversal(value)).sum()
        }
        _ => 1,
    }
}

/// `Format.MaxRegexSize`
fn pattern_length(format: &Value) -> Option<u64> {
    match format {
        Value::Opaque(Opaque::Format(format)) => Some(format.pattern_length),
        _ => None,
    }
}

fn twice(size: u64) -> u64 {
    (size as f64 * 2.0 * TEXT).ceil() as u64
}

/// `MultiplyByCostFactor`
fn times(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
