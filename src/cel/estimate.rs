//! What an expression costs at most (`checker/cost.go`), when the sizes of its variables are known.
//!
//! Upstream's figures are shown to people, so its ways are kept, odd ones too: what has no path of its own is
//! as large as the variable, and what is not known to be small is without bound.

use super::ast::{Expr, ExpressionNode, Macro, MacroKind, MapEntry};
use super::estimate_calls;
use super::sizes::{
    EntrySizes, Estimate, LIST, ONE, SizePlace, SizeRange, SizeRoot, SizeStep, UNKNOWN, union,
};
use super::types::Type;
use super::value::Value;

const MAP: u64 = 30;
const STRUCT: u64 = 40;

pub(super) struct Estimator<'s> {
    pub root: SizeRoot<'s>,
    /// Of comprehensions, innermost last; their own cost is not used.
    pub scopes: Vec<(String, Estimate<'s>)>,
}

impl<'s> Estimator<'s> {
    pub(super) fn estimate(&mut self, expr: &Expr) -> Estimate<'s> {
        super::on_enough_stack(|| self.estimate_node(expr))
    }

    fn estimate_node(&mut self, expr: &Expr) -> Estimate<'s> {
        match &expr.node {
            ExpressionNode::Literal(value) => Estimate::call(0, literal(value)),
            ExpressionNode::Ident(name) => self.ident(expr, name),
            ExpressionNode::Select { operand, field } => {
                let inner = self.estimate(operand);
                let own = u64::from(matches!(operand.of, Type::Map(..) | Type::Object(_)));
                let place = inner.place.step(self.root, &SizeStep::Field(field));
                let size = place.size().or_else(|| of_type(&expr.of));
                Estimate { place, ..Estimate::call(inner.cost.saturating_add(own), size) }
            }
            ExpressionNode::Has { operand, .. } => Estimate::call(self.estimate(operand).cost, Some(ONE)),
            ExpressionNode::OptionalSelect { operand, .. } => {
                Estimate::call(self.estimate(operand).cost.saturating_add(1), None)
            }
            ExpressionNode::Call { function, target, args } => {
                self.call(expr, function, target.as_deref(), args)
            }
            ExpressionNode::List(items) => self.list(items),
            ExpressionNode::Map(entries) => self.map(entries),
            ExpressionNode::Struct { fields, .. } => {
                let costs = fields.iter().map(|field| self.estimate(&field.value.1).cost);
                Estimate::call(sum(STRUCT, costs), None)
            }
            ExpressionNode::Macro(comprehension) => self.comprehension(comprehension),
        }
    }

    fn ident(&self, expr: &Expr, name: &str) -> Estimate<'s> {
        let local = self.scopes.iter().rev().find(|(known, _)| known == name).map(|(_, local)| *local);
        let place = local.map_or(SizePlace::At(self.root.size), |local| local.place);
        let size = place.size().or_else(|| of_type(&expr.of)).or_else(|| local?.size);
        Estimate { place, entries: local.and_then(|local| local.entries), ..Estimate::call(1, size) }
    }

    fn list(&mut self, items: &[MapEntry<Expr>]) -> Estimate<'s> {
        let parts: Vec<Estimate> = items.iter().map(|item| self.estimate(&item.value)).collect();
        let value = parts.iter().map(Estimate::range).reduce(union).unwrap_or((0, 0));
        let count = items.len() as u64;
        let cost = sum(LIST, parts.iter().map(|part| part.cost));
        Estimate { entries: Some(EntrySizes::of_list(value)), ..Estimate::call(cost, Some((count, count))) }
    }

    fn map(&mut self, items: &[MapEntry<(Expr, Expr)>]) -> Estimate<'s> {
        let (mut cost, mut entries) = (MAP, None::<EntrySizes>);
        for MapEntry { value: (key, value), .. } in items {
            let (key, value) = (self.estimate(key), self.estimate(value));
            cost = sum(cost, [key.cost, value.cost].into_iter());
            let entry = EntrySizes { key: key.range(), value: value.range() };
            entries = entry.union(entries).or(Some(entry));
        }
        let entries = entries.or(Some(EntrySizes { key: (0, 0), value: (0, 0) }));
        let count = items.len() as u64;
        Estimate { entries, ..Estimate::call(cost, Some((count, count))) }
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Estimate<'s> {
        let target_estimate = target.map(|target| self.estimate(target));
        let parts: Vec<Estimate> = args.iter().map(|arg| self.estimate(arg)).collect();
        let costs = sum(target_estimate.map_or(0, |target| target.cost), parts.iter().map(|part| part.cost));
        match (function, &parts[..]) {
            ("dyn", [inner]) => Estimate { cost: costs.saturating_add(1), ..*inner },
            ("_?_:_", [condition, left, right]) => {
                let cost = condition.cost.saturating_add(left.cost.max(right.cost));
                let entries = left.entries.and_then(|entries| entries.union(right.entries));
                let size = Some(union(left.range(), right.range()));
                Estimate { entries, ..Estimate::call(cost, size) }
            }
            ("_[_]", [container, _]) => {
                let place = container.place.step(self.root, &SizeStep::Items);
                let size = container.entries.map(|entries| entries.value).or_else(|| place.size());
                let size = size.or_else(|| of_type(&expr.of));
                Estimate { place, ..Estimate::call(costs.saturating_add(1), size) }
            }
            _ => {
                let call = estimate_calls::EstimatedCall {
                    root: self.root,
                    function,
                    target: target.zip(target_estimate),
                    args,
                    parts: &parts,
                };
                let (own, size) = call.estimate();
                let entries = match (function, &parts[..]) {
                    ("_+_", [left, right]) => left.entries.and_then(|entries| entries.union(right.entries)),
                    _ => None,
                };
                let size = size.or_else(|| of_type(&expr.of));
                Estimate { entries, ..Estimate::call(costs.saturating_add(own), size) }
            }
        }
    }

    fn comprehension(&mut self, comprehension: &Macro) -> Estimate<'s> {
        let Macro { kind, range, variables, filter, step } = comprehension;
        let over = self.estimate(range);
        let depth = self.scopes.len();
        match kind {
            MacroKind::Bind => return self.bound(over, &variables[0], step),
            MacroKind::OptMap | MacroKind::OptFlatMap => {
                return self.held(*kind, over, &variables[0], step);
            }
            _ => self.push_variables(&range.of, over, variables),
        }
        let element = self.scopes.last().map_or(UNKNOWN, |(_, last)| last.range());
        let filter_cost = filter.as_ref().map(|filter| self.estimate(filter).cost);
        let made = self.estimate(step);
        self.scopes.truncate(depth);
        // What macros expand to: (start, each time beside the step, end, size of an element).
        let (start, each, end, value) = match kind {
            MacroKind::All => (0, 3, 1, None),
            MacroKind::Exists => (0, 4, 1, None),
            MacroKind::ExistsOne => (0, 2, 2, None),
            MacroKind::Filter => (LIST, 13, 1, Some(element)),
            MacroKind::TransformMap => (MAP, 3, 1, Some(made.range())),
            MacroKind::TransformMapEntry => (MAP, 2, 1, None),
            // The list is named, its keys are made, and both are sorted.
            MacroKind::SortBy => (2 * LIST + 2, 12, 1, None),
            _ => (LIST, 12, 1, Some(made.range())),
        };
        let cost = sum(start + end, [over.cost].into_iter());
        let each = made.cost.saturating_add(each).saturating_add(filter_cost.unwrap_or(0));
        let cost = cost.saturating_add(over.range().1.saturating_mul(each));
        let size = if start > 0 { over.range() } else { ONE };
        if *kind == MacroKind::SortBy {
            let (sorting, size) = estimate_calls::sorting(size, &step.of);
            return Estimate::call(cost.saturating_add(sorting), Some(size));
        }
        let entries = value.map(|value| EntrySizes::of_list((0, value.1)));
        Estimate { entries, ..Estimate::call(cost, Some(size)) }
    }

    fn push_variables(&mut self, of: &Type, over: Estimate<'s>, names: &[String]) {
        let is_map = matches!(of, Type::Map(..));
        let place = |step| over.place.step(self.root, &step);
        let key_size = over.entries.map(|entries| entries.key);
        let value_size = over.entries.map(|entries| entries.value);
        let key = Estimate { place: place(SizeStep::Keys), ..Estimate::call(0, key_size) };
        let index = Estimate { place: place(SizeStep::Unknown), ..Estimate::call(0, key_size) };
        let value = Estimate { place: place(SizeStep::Items), ..Estimate::call(0, value_size) };
        let found = match (names.len(), is_map) {
            (2, true) => vec![key, value],
            (2, false) => vec![index, value],
            (_, true) => vec![key],
            (_, false) => vec![value],
        };
        self.scopes.extend(names.iter().cloned().zip(found));
    }

    /// A name for a value: going through an empty list, too.
    fn bound(&mut self, value: Estimate<'s>, name: &str, step: &Expr) -> Estimate<'s> {
        self.scopes.push((name.to_owned(), value));
        let result = self.estimate(step);
        self.scopes.pop();
        Estimate { cost: sum(LIST, [value.cost, result.cost].into_iter()), ..result }
    }

    /// What an optional may hold: upstream gives names to it and to what is in it by going through empty
    /// lists, and asks whether there is anything.
    fn held(&mut self, kind: MacroKind, optional: Estimate<'s>, name: &str, step: &Expr) -> Estimate<'s> {
        self.scopes.push((name.to_owned(), Estimate::call(0, None)));
        let result = self.estimate(step);
        self.scopes.pop();
        let own = 2 * LIST + 4 + u64::from(kind == MacroKind::OptMap);
        Estimate::call(sum(own, [optional.cost, result.cost].into_iter()), None)
    }
}

fn literal(value: &Value) -> Option<SizeRange> {
    let length = match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        _ => 1,
    };
    Some((length, length))
}

fn of_type(of: &Type) -> Option<SizeRange> {
    use Type::{Bool, Double, Duration, Int, Timestamp, Uint};
    matches!(of, Bool | Double | Duration | Int | Timestamp | Uint).then_some(ONE)
}

fn sum(base: u64, costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(base, u64::saturating_add)
}
