//! What is wrong with arguments that stand in the expression (`cel.ASTValidators`): durations, timestamps and
//! regular expressions are read while it is compiled.

use super::ast::{Expr, ExpressionNode};
use super::error::Issue;
use super::go_patterns;
use super::times::{parse_duration, parse_timestamp};
use super::value::Value;

/// Everything that is wrong.
pub(super) fn validate(expr: &Expr) -> Vec<Issue> {
    let mut issues = vec![];
    visit(expr, &mut issues);
    issues
}

fn visit(expr: &Expr, issues: &mut Vec<Issue>) {
    super::on_enough_stack(|| {
        if let ExpressionNode::Call { function, target, args } = &expr.node {
            issues.extend(wrong_argument(function, target.is_some(), args));
        }
        expr.parts().into_iter().for_each(|part| visit(part, issues));
    });
}

fn wrong_argument(function: &str, is_member: bool, args: &[Expr]) -> Option<Issue> {
    let arg = args.get(usize::from(function == "matches" && !is_member))?;
    let ExpressionNode::Literal(Value::String(text)) = &arg.node else { return None };
    let is_right = match (function, is_member) {
        ("duration", false) => parse_duration(text).is_some(),
        ("timestamp", false) => parse_timestamp(text).is_some(),
        ("matches", _) => go_patterns::compile(text).is_ok(),
        _ => true,
    };
    (!is_right).then(|| Issue { at: arg.at, message: format!("invalid {function} argument") })
}
