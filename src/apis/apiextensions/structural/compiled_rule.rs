//! `x-kubernetes-validations` (`schema/cel`): rules are compiled with their schema.

use serde_json::Value;

use apimachinery::field_error::ErrorType;
use cel::schema::declared_type;
use cel::{Environment, Program, Type};

/// One rule.
#[derive(Debug)]
pub struct CompiledRule {
    pub(super) rule: String,
    pub(super) message: String,
    pub(super) message_expression: Option<(String, Program)>,
    pub(super) reason: ErrorType,
    pub(super) field_path: String,
    pub(super) optional_old_self: bool,
    pub(super) program: Program,
    pub(super) uses_old_self: bool,
}

/// `self` and `oldSelf`, as a schema declares them; None where rules cannot see anything.
pub fn environment(schema: &Value, is_resource: bool, optional_old_self: bool) -> Option<Environment> {
    let of = declared_type(schema, is_resource)?;
    let old = if optional_old_self { Type::optional(of.clone()) } else { of.clone() };
    Some(Environment::new().with_variable("self", of).with_variable("oldSelf", old))
}

/// The rules of one schema. One that does not compile is left out: the definition was refused, or stems
/// from a data dir of another version.
pub(super) fn compile_rules(schema: &Value, is_resource: bool) -> Vec<CompiledRule> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.filter_map(|rule| compile(schema, is_resource, rule)).collect()
}

fn compile(schema: &Value, is_resource: bool, rule: &Value) -> Option<CompiledRule> {
    let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let optional_old_self = rule["optionalOldSelf"].as_bool().unwrap_or(false);
    let environment = environment(schema, is_resource, optional_old_self)?;
    let program = environment.compile(&text("rule")).ok()?;
    let message_expression = rule["messageExpression"].as_str().filter(|text| !text.trim().is_empty());
    Some(CompiledRule {
        rule: text("rule"),
        message: text("message"),
        message_expression: message_expression
            .and_then(|text| Some((text.to_owned(), environment.compile(text).ok()?))),
        reason: reason(&text("reason")),
        field_path: text("fieldPath"),
        optional_old_self,
        uses_old_self: program.mentions("oldSelf"),
        program,
    })
}

fn reason(name: &str) -> ErrorType {
    match name {
        "FieldValueRequired" => ErrorType::Required,
        "FieldValueForbidden" => ErrorType::Forbidden,
        "FieldValueDuplicate" => ErrorType::Duplicate,
        _ => ErrorType::Invalid,
    }
}
