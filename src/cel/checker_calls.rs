//! Which of a function's forms is meant, by the types of what it is called with.

use std::collections::BTreeMap;

use super::ast::{Expr, ExpressionNode};
use super::declarations::Overload;
use super::types::Type;

/// The result where one form fits, `dyn` where several with different results do.
pub(super) fn resolve(forms: &[Overload], target: Option<&Type>, args: &[Type]) -> Option<Type> {
    let mut result: Option<Type> = None;
    for form in forms.iter().filter(|form| form.args.len() == args.len()) {
        let mut bound = BTreeMap::new();
        let fits = match (&form.target, target) {
            (None, None) => true,
            (Some(wanted), Some(given)) => wanted.accepts(given, &mut bound),
            _ => false,
        };
        if !fits || !form.args.iter().zip(args).all(|(wanted, given)| wanted.accepts(given, &mut bound)) {
            continue;
        }
        let found = form.result.substitute(&bound);
        result = match result {
            None => Some(found),
            Some(before) if before == found => Some(before),
            Some(_) => Some(Type::Dyn),
        };
    }
    result
}

/// What is said where no form fits.
pub(super) fn no_overload(function: &str, target: Option<&Type>, args: &[Type]) -> String {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let applied = match target {
        Some(target) => format!("{target}.({})", args.join(", ")),
        None => format!("({})", args.join(", ")),
    };
    format!("found no matching overload for '{function}' applied to '{applied}'")
}

/// The type of `condition ? yes : no`; None where there is none.
pub(super) fn conditional(args: &[Expr], types: &[Type]) -> Option<Type> {
    let is_empty = |arg: &Expr| matches!(&arg.node, ExpressionNode::List(items) if items.is_empty());
    // A list without items is one of whatever the other has.
    let joined = match types {
        [_, yes @ Type::List(_), Type::List(_)] if is_empty(&args[2]) => Some(yes.clone()),
        [_, Type::List(_), no @ Type::List(_)] if is_empty(&args[1]) => Some(no.clone()),
        _ => types[1].join(&types[2]).or_else(|| types[2].join(&types[1])),
    };
    joined.filter(|_| matches!(types[0], Type::Bool | Type::Dyn))
}
