//! What an expression costs at most (`checker/cost.go`), when the sizes of its variables are known.

use std::collections::BTreeMap;

use super::ast::{Expr, Macro, MacroKind, Node};

/// How large a value can become.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// A value of fixed size.
    Scalar,
    /// A text of at most so many bytes.
    Text(u64),
    /// At most so many elements or entries.
    Many(u64, Box<Size>),
    /// An object.
    Fields(BTreeMap<String, Size>),
}

impl Size {
    fn bytes(&self) -> u64 {
        match self {
            Size::Text(length) => *length,
            _ => 1,
        }
    }

    fn count(&self) -> u64 {
        match self {
            Size::Many(count, _) => *count,
            Size::Text(length) => *length,
            _ => 1,
        }
    }

    fn element(&self) -> Size {
        match self {
            Size::Many(_, element) => (**element).clone(),
            _ => Size::Scalar,
        }
    }

    /// The larger of two.
    fn or(self, other: Size) -> Size {
        if other.count() > self.count() { other } else { self }
    }
}

pub(super) struct Estimator {
    pub scopes: Vec<(String, Size)>,
}

impl Estimator {
    /// The cost of an expression and the size of its value.
    pub(super) fn estimate(&mut self, expr: &Expr) -> (u64, Size) {
        super::on_enough_stack(|| self.estimate_node(expr))
    }

    fn estimate_node(&mut self, expr: &Expr) -> (u64, Size) {
        match &expr.node {
            Node::Literal(value) => {
                (0, value.as_str().map_or(Size::Scalar, |text| Size::Text(text.len() as u64)))
            }
            Node::Ident(name) => {
                let found = self.scopes.iter().rev().find(|(known, _)| known == name);
                (1, found.map_or(Size::Scalar, |(_, size)| size.clone()))
            }
            Node::Select { operand, field } | Node::OptionalSelect { operand, field } => {
                let (cost, size) = self.estimate(operand);
                let size = match size {
                    Size::Fields(fields) => fields.get(field).cloned().unwrap_or(Size::Scalar),
                    other => other.element(),
                };
                (cost.saturating_add(1), size)
            }
            Node::Has { operand, .. } => (self.estimate(operand).0.saturating_add(1), Size::Scalar),
            Node::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Node::List(items) => {
                let parts: Vec<(u64, Size)> = items.iter().map(|item| self.estimate(&item.value)).collect();
                let element = parts.iter().map(|(_, size)| size.clone()).reduce(Size::or);
                let size = Size::Many(parts.len() as u64, Box::new(element.unwrap_or(Size::Scalar)));
                (sum(10, parts.iter().map(|(cost, _)| *cost)), size)
            }
            Node::Map(entries) => {
                let costs = entries.iter().map(|entry| {
                    self.estimate(&entry.value.0).0.saturating_add(self.estimate(&entry.value.1).0)
                });
                (sum(30, costs), Size::Many(entries.len() as u64, Box::new(Size::Scalar)))
            }
            Node::Struct { fields, .. } => {
                (sum(40, fields.iter().map(|field| self.estimate(&field.value.1).0)), Size::Scalar)
            }
            Node::Macro(comprehension) => self.comprehension(comprehension),
        }
    }

    fn call(&mut self, function: &str, target: Option<&Expr>, args: &[Expr]) -> (u64, Size) {
        let parts: Vec<(u64, Size)> =
            target.into_iter().chain(args).map(|part| self.estimate(part)).collect();
        let costs = sum(0, parts.iter().map(|(cost, _)| *cost));
        let size = |at: usize| parts.get(at).map_or(Size::Scalar, |(_, size)| size.clone());
        let tenth = |bytes: u64| bytes.div_ceil(10);
        let (own, result) = match function {
            "_&&_" | "_||_" | "!_" => (0, Size::Scalar),
            "_?_:_" => (0, size(1).or(size(2))),
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                (1 + tenth(size(0).count().min(size(1).count())), Size::Scalar)
            }
            "@in" => (1 + size(1).count(), Size::Scalar),
            "_[_]" | "_[?_]" => (1, size(0).element()),
            "_+_" => match (size(0), size(1)) {
                (Size::Text(left), Size::Text(right)) => {
                    let both = left.saturating_add(right);
                    (1 + tenth(both), Size::Text(both))
                }
                (Size::Many(left, element), Size::Many(right, _)) => {
                    let both = left.saturating_add(right);
                    (1 + both, Size::Many(both, element))
                }
                _ => (1, Size::Scalar),
            },
            "matches" | "find" | "findAll" => {
                let work = tenth(size(0).bytes()).saturating_mul(size(1).bytes().div_ceil(4));
                (1 + work, size(0))
            }
            "contains" => (1 + tenth(size(0).bytes()).saturating_mul(tenth(size(1).bytes())), Size::Scalar),
            "startsWith" | "endsWith" => (1 + tenth(size(1).bytes()), Size::Scalar),
            // What a number or a time is as a text has no length that is known, as upstream.
            "string" if !matches!(size(0), Size::Text(_)) => (1, Size::Text(u64::MAX)),
            "size" | "type" | "has" => (1, Size::Scalar),
            "sets.contains" | "sets.intersects" | "sets.equivalent" => {
                (1 + size(0).count().saturating_mul(size(1).count()), Size::Scalar)
            }
            _ => (1 + size(0).count().max(tenth(size(0).bytes())), size(0)),
        };
        (costs.saturating_add(own), result)
    }

    fn comprehension(&mut self, comprehension: &Macro) -> (u64, Size) {
        let Macro { kind, range, variables, filter, step } = comprehension;
        let (range_cost, size) = self.estimate(range);
        let single = matches!(kind, MacroKind::Bind | MacroKind::OptMap | MacroKind::OptFlatMap);
        let (times, element) = if single { (1, size.clone()) } else { (size.count(), size.element()) };
        let depth = self.scopes.len();
        for (at, name) in variables.iter().enumerate() {
            let is_last = at + 1 == variables.len();
            self.scopes.push((name.clone(), if is_last { element.clone() } else { Size::Scalar }));
        }
        let filter_cost = filter.as_ref().map_or(0, |filter| self.estimate(filter).0);
        let (step_cost, step_size) = self.estimate(step);
        self.scopes.truncate(depth);
        let each = step_cost.saturating_add(filter_cost).saturating_add(if single { 0 } else { 3 });
        let result = match kind {
            MacroKind::Filter | MacroKind::SortBy => size,
            MacroKind::Map | MacroKind::TransformList | MacroKind::TransformMap => {
                Size::Many(times, Box::new(step_size))
            }
            MacroKind::Bind | MacroKind::OptMap | MacroKind::OptFlatMap => step_size,
            _ => Size::Scalar,
        };
        (range_cost.saturating_add(each.saturating_mul(times)), result)
    }
}

fn sum(base: u64, costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(base, u64::saturating_add)
}
