//! Checks calls of functions and operators: which of a function's forms is meant.

use std::collections::BTreeMap;

use super::ast::{Expr, Node};
use super::checker::Checker;
use super::declarations::{Overload, overloads};
use super::types::Type;

/// The type of a call. A namespaced function (`sets.contains(...)`) becomes a global one.
pub(super) fn check(
    checker: &mut Checker,
    at: usize,
    function: &mut String,
    target: &mut Option<Box<Expr>>,
    args: &mut [Expr],
) -> Type {
    if let Some(prefix) = target.as_ref().and_then(|target| target.dotted()) {
        let qualified = format!("{prefix}.{function}");
        let root = prefix.split('.').next().unwrap_or_default();
        if !checker.is_name(root) && checker.has_function(&qualified) {
            *function = qualified;
            *target = None;
        }
    }
    match (function.as_str(), args.len()) {
        ("_&&_" | "_||_", _) => return logical(checker, args),
        ("_?_:_", 3) => return conditional(checker, at, args),
        _ => {}
    }
    if !checker.has_function(function) {
        if let Some(target) = target {
            checker.check(target);
        }
        args.iter_mut().for_each(|arg| drop(checker.check(arg)));
        return checker.issue(at, format!("undeclared reference to '{function}' (in container '')"));
    }
    let target = target.as_mut().map(|target| checker.check(target));
    let args: Vec<Type> = args.iter_mut().map(|arg| argument(checker, function, arg)).collect();
    match resolve(overloads(function).unwrap_or_default(), target.as_ref(), &args) {
        Some(result) => result,
        None => no_overload(checker, at, function, target.as_ref(), &args),
    }
}

/// The values that `format` takes may be of many types.
fn argument(checker: &mut Checker, function: &str, arg: &mut Expr) -> Type {
    match &mut arg.node {
        Node::List(items) if function == "format" => {
            items.iter_mut().for_each(|item| drop(checker.check(&mut item.value)));
            Type::list(Type::Dyn)
        }
        _ => checker.check(arg),
    }
}

pub(super) fn no_overload(
    checker: &mut Checker,
    at: usize,
    function: &str,
    target: Option<&Type>,
    args: &[Type],
) -> Type {
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let applied = match target {
        Some(target) => format!("{target}.({})", args.join(", ")),
        None => format!("({})", args.join(", ")),
    };
    checker.issue(at, format!("found no matching overload for '{function}' applied to '{applied}'"))
}

/// The result where one form fits, `dyn` where several with different results do.
fn resolve(forms: &[Overload], target: Option<&Type>, args: &[Type]) -> Option<Type> {
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

fn logical(checker: &mut Checker, args: &mut [Expr]) -> Type {
    for arg in args {
        let found = checker.check(arg);
        if !matches!(found, Type::Bool | Type::Dyn) {
            checker.issue(arg.at, format!("expected type 'bool' but found '{found}'"));
        }
    }
    Type::Bool
}

fn conditional(checker: &mut Checker, at: usize, args: &mut [Expr]) -> Type {
    let types: Vec<Type> = args.iter_mut().map(|arg| checker.check(arg)).collect();
    let is_empty = |arg: &Expr| matches!(&arg.node, Node::List(items) if items.is_empty());
    // A list without items is one of whatever the other has.
    let joined = match &types[..] {
        [_, yes @ Type::List(_), Type::List(_)] if is_empty(&args[2]) => Some(yes.clone()),
        [_, Type::List(_), no @ Type::List(_)] if is_empty(&args[1]) => Some(no.clone()),
        _ => types[1].join(&types[2]).or_else(|| types[2].join(&types[1])),
    };
    match joined {
        Some(joined) if matches!(types[0], Type::Bool | Type::Dyn) => joined,
        _ => no_overload(checker, at, "_?_:_", None, &types),
    }
}
