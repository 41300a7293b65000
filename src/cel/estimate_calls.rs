//! What a call costs at most beside its arguments (`checker/cost.go`, `k8s.io/apiserver/pkg/cel/library`),
//! and how large its value is.

use super::ast::{Expr, ExpressionNode};
use super::sizes::{Estimate, LIST, SizePlace, SizeRange, SizeRoot, SizeStep, UNKNOWN, union};
use super::types::Type;
use super::value::Value;

/// `StringTraversalCostFactor` and `RegexStringLengthCostFactor`.
const TEXT: f64 = 0.1;
const REGEX: f64 = 0.25;
/// The costliest regular expression of a format has so many characters.
const FORMAT_REGEX: f64 = 128.0;
/// The longest name of a format.
const FORMAT: u64 = 64;
/// An address of each kind is compared so.
const ADDRESSES: u64 = 4;
const NETWORKS: u64 = ADDRESSES + 3;

/// A call, and what is known of its parts.
pub(super) struct EstimatedCall<'a, 's> {
    pub root: SizeRoot<'s>,
    pub function: &'a str,
    pub target: Option<(&'a Expr, Estimate<'s>)>,
    pub args: &'a [Expr],
    pub parts: &'a [Estimate<'s>],
}

impl EstimatedCall<'_, '_> {
    /// The cost and the size of the value; None where its type decides.
    pub(super) fn estimate(&self) -> (u64, Option<SizeRange>) {
        let (first, second) = (self.size(0), self.size(1));
        let target = self.target.map_or(UNKNOWN, |(_, estimate)| estimate.range());
        match (self.function, self.args.len()) {
            ("_&&_" | "_||_", _) => (0, None),
            ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_", 2) => (self.comparison(), None),
            ("@in", 2) => (self.membership(second.1), None),
            ("_+_", 2) => self.addition(),
            ("matches", 1) => (matching(target, first), None),
            ("matches", 2) => (matching(first, second), None),
            ("find" | "findAll", 1..) => (matching(target, first), Some((0, target.1))),
            ("contains", 1) => (times(target.1, TEXT).saturating_mul(times(first.1, TEXT)), None),
            ("startsWith" | "endsWith", 1) => (times(first.1, TEXT), None),
            ("string", 1) => self.conversion(Type::Bytes, (first.0 / 4, first.1)),
            ("bytes", 1) => self.conversion(Type::String, (first.0, first.1.saturating_mul(4))),
            ("format", _) => (times(target.1, TEXT), None),
            ("strings.quote", 1) => {
                (times(first.1, TEXT), Some((first.0 + 2, first.1.saturating_mul(2).saturating_add(2))))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => (times(target.1, TEXT), Some(target)),
            ("url" | "jsonpatch.escapeKey", 1) => (times(first.1, TEXT), Some(first)),
            ("replace", 2..) => (times(target.1, 2.0 * TEXT), Some(replaced(target, first, second))),
            ("split", _) => (times(target.1, 2.0 * TEXT), Some((0, self.pieces(target.1)))),
            ("join", _) => self.joined(target),
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
                (self.traversal(target), None)
            }
            ("ip", 0) => (1, None),
            ("ip" | "isIP" | "cidr" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver", _) => {
                (times(first.1, TEXT), None)
            }
            ("slice", 2) => allocating(self.slice(target), 1.0),
            ("lists.range", 1) => allocating(exactly(self.number(0).unwrap_or(u64::MAX)), 1.0),
            ("reverse", 0) => allocating(target, 1.0),
            ("flatten", 0) => allocating(target, 1.0),
            ("flatten", 1) => allocating(target, self.number(0).unwrap_or(u64::MAX) as f64),
            // Whatever is in the list, although it costs more to compare texts.
            ("distinct", 0) => allocating(product(target, target), 2.0),
            ("sort", 0) => {
                let (cost, size) = sorting(target, self.element().map_or(&Type::Dyn, |(of, _)| of));
                (cost, Some(size))
            }
            ("sets.contains" | "sets.intersects", 2) => (product(first, second).1.saturating_add(1), None),
            ("sets.equivalent", 2) => (times(product(first, second).1, 2.0).saturating_add(1), None),
            ("ip.isCanonical", 1) => (times(first.1, 2.0 * TEXT), None),
            ("containsIP", 1) => (ADDRESSES.saturating_add(self.parsing(first.1)), None),
            ("containsCIDR", 1) => (NETWORKS.saturating_add(self.parsing(first.1)), None),
            ("validate", 1) => (times(times(first.1, TEXT), FORMAT_REGEX * REGEX), None),
            _ => (1, None),
        }
    }

    fn size(&self, at: usize) -> SizeRange {
        self.parts.get(at).map_or(UNKNOWN, Estimate::range)
    }

    fn of(&self, at: usize) -> &Type {
        self.args.get(at).map_or(&Type::Dyn, |arg| &arg.of)
    }

    /// The costliest of the forms that may be meant: texts are gone through, numbers are not.
    fn comparison(&self) -> u64 {
        let (left, right) = (self.size(0), self.size(1));
        let texts = times(left.1.min(right.1), TEXT);
        match (self.function, self.of(0), self.of(1)) {
            ("_==_", Type::Opaque(left), Type::Opaque(right)) if left == right => match &**left {
                "kubernetes.NamedFormat" => times(FORMAT, TEXT),
                "kubernetes.URL" => times(self.parts[1].size.map_or(1, |size| size.1), TEXT),
                _ => 1,
            },
            ("_==_" | "_!=_", ..) => texts,
            (_, Type::Dyn, Type::Dyn) => texts.max(1),
            (_, left, right) if is_text(left) || is_text(right) => texts,
            _ => 1,
        }
    }

    fn membership(&self, elements: u64) -> u64 {
        match self.of(1) {
            Type::List(_) => elements,
            Type::Dyn => elements.max(1),
            _ => 1,
        }
    }

    fn addition(&self) -> (u64, Option<SizeRange>) {
        let (left, right) = (self.size(0), self.size(1));
        let both = (left.0.saturating_add(right.0), left.1.saturating_add(right.1));
        let texts = times(both.1, TEXT);
        match (self.of(0), self.of(1)) {
            (Type::List(_), _) | (_, Type::List(_)) => (1, Some(both)),
            (left, right) if is_text(left) || is_text(right) => (texts, Some(both)),
            (Type::Dyn, Type::Dyn) => (texts.max(1), Some(both)),
            _ => (1, None),
        }
    }

    /// From one kind of text to the other; whatever else it is made of has no length that is known.
    fn conversion(&self, from: Type, result: SizeRange) -> (u64, Option<SizeRange>) {
        let cost = times(self.size(0).1, TEXT);
        match self.of(0) {
            of if *of == from => (cost, Some(result)),
            Type::Dyn => (cost.max(1), Some(result)),
            _ => (1, None),
        }
    }

    /// A number that stands in the expression.
    fn number(&self, at: usize) -> Option<u64> {
        match self.args.get(at).map(|arg| &arg.node) {
            Some(ExpressionNode::Literal(Value::Int(number))) => Some(*number as u64),
            _ => None,
        }
    }

    fn pieces(&self, most: u64) -> u64 {
        self.number(1).unwrap_or(most)
    }

    fn slice(&self, list: SizeRange) -> SizeRange {
        let end = self.number(1).unwrap_or(list.1);
        exactly(end.wrapping_sub(self.number(0).unwrap_or(0)))
    }

    /// An element of the target, where that is a list.
    fn element(&self) -> Option<(&Type, SizeRange)> {
        let (target, estimate) = self.target?;
        let Type::List(item) = &target.of else { return None };
        let place = match estimate.place {
            SizePlace::Nowhere => SizePlace::Nowhere,
            place => place.step(self.root, &SizeStep::Items),
        };
        Some((item, place.size().unwrap_or(UNKNOWN)))
    }

    fn joined(&self, list: SizeRange) -> (u64, Option<SizeRange>) {
        let mut size = self.element().map_or((0, 0), |(_, element)| product(list, element));
        if !self.args.is_empty() {
            let separators = product(self.size(0), (list.0.saturating_sub(1), list.1.saturating_sub(1)));
            size = (size.0.saturating_add(separators.0), size.1.saturating_add(separators.1));
        }
        (times(size.1, TEXT), Some(size))
    }

    fn traversal(&self, target: SizeRange) -> u64 {
        match self.element() {
            Some((of, element)) => {
                let texts = if is_text(of) { times(element.1, TEXT) } else { 0 };
                target.1.saturating_mul(texts.saturating_add(1))
            }
            None => times(target.1, TEXT),
        }
    }

    /// An address or network that is a text has to be read first.
    fn parsing(&self, length: u64) -> u64 {
        if matches!(self.of(0), Type::String) { times(length, TEXT) } else { 0 }
    }
}

/// Sorting, and finding what is there twice: everything is compared with everything, and the result is
/// thought to be as large.
pub(super) fn sorting(list: SizeRange, element: &Type) -> (u64, SizeRange) {
    let pairs = product(list, list);
    (allocating(pairs, if is_text(element) { 2.0 + TEXT } else { 2.0 }).0, pairs)
}

/// A call that makes a list.
fn allocating(size: SizeRange, factor: f64) -> (u64, Option<SizeRange>) {
    (times(size.1, factor).saturating_add(LIST + 1), Some(size))
}

fn exactly(size: u64) -> SizeRange {
    (size, size)
}

fn product(left: SizeRange, right: SizeRange) -> SizeRange {
    (left.0.saturating_mul(right.0), left.1.saturating_mul(right.1))
}

fn is_text(of: &Type) -> bool {
    matches!(of, Type::String | Type::Bytes)
}

fn matching(text: SizeRange, pattern: SizeRange) -> u64 {
    times(text.1.saturating_add(1), TEXT).saturating_mul(times(pattern.1, REGEX))
}

/// How large a text can become in which one thing is replaced by another.
fn replaced(text: SizeRange, from: SizeRange, to: SizeRange) -> SizeRange {
    let share = |of: u64, by: u64| (of as f64 / by as f64).ceil() as u64;
    let (most, kept) = match from.0 {
        0 => (text.1.saturating_add(1), text.1),
        least if to.1 <= least => (0, text.1),
        least => (share(text.1, least), 0),
    };
    let (least, kept_least) = match from.1 {
        0 => (text.0.saturating_add(1), text.0),
        longest if longest <= to.0 => (0, 0),
        longest => (share(text.0, longest), 0),
    };
    let least = least.saturating_mul(to.0).saturating_add(kept_least);
    union((least, least), (least, most.saturating_mul(to.1).saturating_add(kept)))
}

/// `MultiplyByCostFactor`, rounded up.
fn times(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
