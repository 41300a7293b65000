//! What is worked out once, when a program is made: lists and maps of constants, conversions of constants
//! (`interpreter.Optimize`). At run time they cost nothing.

use std::collections::BTreeMap;

use super::ast::{Expr, ExpressionNode, Macro, MapEntry};
use super::convert;
use super::error::EvaluationError;
use super::types::Type;
use super::value::{Map, MapKey, Value};

golang::text_error! {
    /// A conversion of a constant that can never be done.
    pub(super) struct BadConstant;
}

/// `IsTypeConversionFunction`
const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Works out the constants of an expression and of everything in it.
///
/// # Errors
/// A conversion that can never be done.
pub(super) fn find(expr: &mut Expr) -> Result<(), BadConstant> {
    super::on_enough_stack(|| find_in(expr))
}

fn find_in(expr: &mut Expr) -> Result<(), BadConstant> {
    match &mut expr.node {
        ExpressionNode::Literal(_) | ExpressionNode::Ident(_) => {}
        ExpressionNode::Select { operand, .. }
        | ExpressionNode::Has { operand, .. }
        | ExpressionNode::OptionalSelect { operand, .. } => {
            find(operand)?;
        }
        ExpressionNode::Call { target, args, .. } => {
            target.as_deref_mut().into_iter().chain(args).try_for_each(find)?;
        }
        ExpressionNode::List(items) => items.iter_mut().try_for_each(|item| find(&mut item.value))?,
        ExpressionNode::Map(entries) => entries.iter_mut().try_for_each(|entry| {
            find(&mut entry.value.0)?;
            find(&mut entry.value.1)
        })?,
        ExpressionNode::Struct { fields, .. } => {
            fields.iter_mut().try_for_each(|field| find(&mut field.value.1))?
        }
        ExpressionNode::Macro(comprehension) => {
            let Macro { range, filter, step, .. } = &mut **comprehension;
            [Some(range), filter.as_mut(), Some(step)].into_iter().flatten().try_for_each(find)?;
        }
    }
    expr.constant = constant(&expr.node).transpose().map_err(|error| error.to_string())?;
    Ok(())
}

fn constant(node: &ExpressionNode) -> Option<Result<Value, EvaluationError>> {
    match node {
        ExpressionNode::Literal(value) => Some(Ok(value.clone())),
        ExpressionNode::List(items) => {
            let item = |item: &MapEntry<Expr>| item.value.constant.clone().filter(|_| !item.optional);
            items.iter().map(item).collect::<Option<Vec<Value>>>().map(|items| Ok(Value::from(items)))
        }
        ExpressionNode::Map(entries) => {
            let entry = |MapEntry { value: (key, value), optional }: &MapEntry<(Expr, Expr)>| {
                let key = key.constant.as_ref().filter(|_| !optional).and_then(MapKey::of);
                key.zip(value.constant.clone())
            };
            let map = entries.iter().map(entry).collect::<Option<BTreeMap<MapKey, Value>>>()?;
            Some(Ok(Value::Map(Map::of(map).into())))
        }
        ExpressionNode::Call { function, target: None, args } => match &args[..] {
            [arg] if CONVERSIONS.contains(&&**function) => convert::convert(function, arg.constant.as_ref()?),
            // Nothing is in an empty list.
            [_, list] if function == "@in" && matches!(list.of, Type::List(_)) => match &list.constant {
                Some(Value::List(list)) if list.items.is_empty() => Some(Ok(Value::Bool(false))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether `x in list` is looked up in a set that was made of the list (`evalSetMembership`).
pub(super) fn is_set(list: &Expr) -> bool {
    let is_primitive = |item: &Value| {
        use Value::{Bool, Bytes, Double, Int, String, Uint};
        matches!(item, Bool(_) | Bytes(_) | Double(_) | Int(_) | String(_) | Uint(_))
    };
    match &list.constant {
        Some(Value::List(items)) => matches!(list.of, Type::List(_)) && items.items.iter().all(is_primitive),
        _ => false,
    }
}
