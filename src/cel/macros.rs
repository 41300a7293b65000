//! Calls that are macros become nodes of their own (`common/parser/macros.go`, `ext/comprehensions.go`,
//! `ext/lists.go` and the optional library).

use super::ast::{Expr, ExpressionNode, Macro, MacroKind};
use super::error::Issue;

/// `name(args)`: `has` is a macro, everything else a function.
pub(super) fn global_call(at: usize, name: String, mut args: Vec<Expr>) -> Result<Expr, Issue> {
    if name != "has" || args.len() != 1 {
        return Ok(Expr::new(at, ExpressionNode::Call { function: name, target: None, args }));
    }
    let argument = args.remove(0);
    match argument.node {
        ExpressionNode::Select { operand, field } => {
            Ok(Expr::new(at, ExpressionNode::Has { operand, field }))
        }
        _ => Err(Issue { at: argument.at, message: "invalid argument to has() macro".into() }),
    }
}

/// `target.name(args)`
pub(super) fn member_call(
    at: usize,
    target: Expr,
    name: String,
    mut args: Vec<Expr>,
    has_bindings: bool,
) -> Result<Expr, Issue> {
    if has_bindings
        && (name.as_str(), args.len()) == ("bind", 3)
        && matches!(&target.node, ExpressionNode::Ident(namespace) if namespace == "cel")
    {
        let (step, range) = (args.remove(2), args.remove(1));
        return comprehension(at, MacroKind::Bind, range, args, None, step);
    }
    let Some((kind, variables, filtered)) = macro_of(&name, args.len()) else {
        let target = Some(Box::new(target));
        return Ok(Expr::new(at, ExpressionNode::Call { function: name, target, args }));
    };
    let step = args.pop().expect("a macro has arguments");
    let filter = if filtered { args.pop() } else { None };
    debug_assert_eq!(args.len(), variables, "the rest are names");
    comprehension(at, kind, target, args, filter, step)
}

/// Kind, number of names, and whether a filter stands behind them.
fn macro_of(name: &str, arguments: usize) -> Option<(MacroKind, usize, bool)> {
    Some(match (name, arguments) {
        ("all", 2 | 3) => (MacroKind::All, arguments - 1, false),
        ("exists", 2 | 3) => (MacroKind::Exists, arguments - 1, false),
        ("exists_one" | "existsOne", 2 | 3) => (MacroKind::ExistsOne, arguments - 1, false),
        ("map", 2) => (MacroKind::Map, 1, false),
        ("map", 3) => (MacroKind::Map, 1, true),
        ("filter", 2) => (MacroKind::Filter, 1, false),
        ("transformList", 3) => (MacroKind::TransformList, 2, false),
        ("transformList", 4) => (MacroKind::TransformList, 2, true),
        ("transformMap", 3) => (MacroKind::TransformMap, 2, false),
        ("transformMap", 4) => (MacroKind::TransformMap, 2, true),
        ("transformMapEntry", 3) => (MacroKind::TransformMapEntry, 2, false),
        ("transformMapEntry", 4) => (MacroKind::TransformMapEntry, 2, true),
        ("sortBy", 2) => (MacroKind::SortBy, 1, false),
        ("optMap", 2) => (MacroKind::OptMap, 1, false),
        ("optFlatMap", 2) => (MacroKind::OptFlatMap, 1, false),
        _ => return None,
    })
}

fn comprehension(
    at: usize,
    kind: MacroKind,
    range: Expr,
    names: Vec<Expr>,
    filter: Option<Expr>,
    step: Expr,
) -> Result<Expr, Issue> {
    let name = |expr: Expr| match expr.node {
        ExpressionNode::Ident(name) => Ok(name),
        _ => Err(Issue { at: expr.at, message: "argument must be a simple name".into() }),
    };
    let variables = names.into_iter().map(name).collect::<Result<Vec<_>, _>>()?;
    Ok(Expr::new(at, ExpressionNode::Macro(Box::new(Macro { kind, range, variables, filter, step }))))
}
