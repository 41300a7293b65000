//! `x-kubernetes-validations`: rules must compile, be about what can be told apart, and not cost too much.

use serde_json::{Value, json};

use super::cost::{declared_elements, estimate, most_in_a_request};
use super::schema::nested;
use crate::apiextensions::structural::environment;
use apimachinery::field_error::{ErrorType, FieldErrors};
use cel::{Environment, Type};
use golang::go_text::escape_html;

/// `StaticEstimatedCostLimit`: what one rule may be estimated to cost for a whole object.
const RULE_LIMIT: u64 = 10_000_000;
/// `StaticEstimatedCRDCostLimit`: what all rules of a version may cost.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// How many rules are named when all of them cost too much.
const MOST_EXPENSIVE: usize = 4;
/// What costs less is never named.
const WORTH_NAMING: u64 = 1_000_000;

/// Where a schema stands: how often it may occur, if that is bounded, and from where on its values cannot be
/// told apart.
#[derive(Clone)]
struct RulePlace {
    path: String,
    is_resource: bool,
    times: Option<u64>,
    uncorrelatable: Option<String>,
}

struct Checking<'a> {
    errors: &'a mut FieldErrors,
    total: u64,
    /// The rules that cost most, the most costly first; at most `MOST_EXPENSIVE`.
    most_expensive: Vec<(u64, String)>,
}

/// All rules of a version.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let mut checking = Checking { errors, total: 0, most_expensive: Vec::new() };
    let place = RulePlace { path: path.into(), is_resource: true, times: Some(1), uncorrelatable: None };
    checking.walk(schema, &place);
    if checking.total > SCHEMA_LIMIT {
        for (_, path) in std::mem::take(&mut checking.most_expensive) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 \
                          schema";
            checking.errors.forbidden(path, detail);
        }
        let detail = too_costly(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            checking.total,
            SCHEMA_LIMIT,
        );
        errors.forbidden(path, detail);
    }
}

impl Checking<'_> {
    fn walk(&mut self, schema: &Value, place: &RulePlace) {
        let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            self.rule(schema, rule, place, &format!("{}.x-kubernetes-validations[{at}]", place.path));
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let atomic = schema["x-kubernetes-map-type"] == "atomic";
            self.walk(inner, &place.below(schema, inner, format!(".properties[{name}]"), atomic));
        }
        let additional = &schema["additionalProperties"];
        if additional.is_object() {
            let atomic = schema["x-kubernetes-map-type"] == "atomic";
            self.walk(additional, &place.below(schema, additional, ".additionalProperties".into(), atomic));
        }
        let items = &schema["items"];
        if items.is_object() {
            let atomic = schema["x-kubernetes-list-type"] != "map";
            self.walk(items, &place.below(schema, items, ".items".into(), atomic));
        }
    }

    fn rule(&mut self, schema: &Value, rule: &Value, place: &RulePlace, path: &str) {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let optional = rule["optionalOldSelf"].as_bool().unwrap_or(false);
        let Some(environment) = environment(schema, place.is_resource, optional) else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            let path = path.rsplit_once('[').map_or(path, |(head, _)| head);
            self.errors.push(path, ErrorType::InternalError, String::new(), detail);
            return;
        };
        let at = format!("{path}.rule");
        let mut uses_old_self = false;
        match environment.compile(text("rule")) {
            Err(error) => {
                self.refuse(at.clone(), rule, &error.described());
            }
            Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
                self.refuse(at.clone(), rule, "cel expression must evaluate to a bool");
            }
            Ok(program) => {
                let times = place.times.unwrap_or_else(|| most_in_a_request(schema));
                let cost = estimate(&program, schema, place.is_resource).saturating_mul(times);
                self.observe("estimated rule cost", &at, cost);
                uses_old_self = program.mentions("oldSelf");
            }
        }
        self.message_expression(&environment, schema, rule, place, path);
        match (uses_old_self, &place.uncorrelatable) {
            (true, Some(within)) => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                self.errors.invalid(at, &json!(text("rule")), detail);
            }
            (false, _) if rule["optionalOldSelf"].is_boolean() => {
                let detail = "may not be set if oldSelf is not used in rule";
                self.errors.invalid(format!("{path}.optionalOldSelf"), &rule["optionalOldSelf"], detail);
            }
            _ => {}
        }
    }

    /// With the whole rule shown, as Go's internal type.
    fn refuse(&mut self, at: String, rule: &Value, detail: &str) {
        let text = |key: &str| json!(rule[key].as_str().unwrap_or_default());
        let shown = format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
             \"OptionalOldSelf\":{}}}",
            text("rule"),
            text("message"),
            text("messageExpression"),
            rule["reason"],
            text("fieldPath"),
            rule["optionalOldSelf"]
        );
        self.errors.push(at, ErrorType::Invalid, escape_html(shown), detail);
    }

    fn observe(&mut self, what: &str, path: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost >= WORTH_NAMING {
            let at = self.most_expensive.partition_point(|(other, _)| *other >= cost);
            self.most_expensive.insert(at, (cost, path.to_owned()));
            self.most_expensive.truncate(MOST_EXPENSIVE);
        }
        if cost > RULE_LIMIT {
            self.errors.forbidden(path, too_costly(what, cost, RULE_LIMIT));
        }
    }

    fn message_expression(
        &mut self,
        environment: &Environment,
        schema: &Value,
        rule: &Value,
        place: &RulePlace,
        path: &str,
    ) {
        let Some(expression) = rule["messageExpression"].as_str() else { return };
        let at = format!("{path}.messageExpression");
        if expression.is_empty() {
            return;
        }
        match environment.compile(expression) {
            Err(error) => {
                let detail = format!("messageExpression {}", error.described());
                self.refuse(at, rule, &detail);
            }
            Ok(program) if !matches!(program.result_type(), Type::String | Type::Dyn) => {
                self.refuse(at, rule, "messageExpression must evaluate to a string");
            }
            Ok(program) => {
                // However often: that is upstream's way.
                let cost = estimate(&program, schema, place.is_resource);
                self.observe("estimated messageExpression cost", &at, cost);
            }
        }
    }
}

/// What rules say beside their expressions; while something of it is wrong, nothing is compiled.
pub(super) fn validate_texts(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, rule) in rules.iter().enumerate() {
        texts(schema, rule, &format!("{path}.x-kubernetes-validations[{at}]"), errors);
    }
    for (path, inner) in nested(schema, path) {
        validate_texts(inner, &path, errors);
    }
}

fn texts(schema: &Value, rule: &Value, path: &str, errors: &mut FieldErrors) {
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    let (trimmed, message, field_path) = (text("rule").trim(), text("message"), text("fieldPath"));
    let (at, empty) = (format!("{path}.message"), "must be non-empty if specified");
    if trimmed.is_empty() {
        errors.required(format!("{path}.rule"), "rule is not specified");
    } else if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(at, &json!(message), empty);
    } else if has_line_breaks(message.trim()) {
        errors.invalid(at, &json!(message), "must not contain line breaks");
    } else if has_line_breaks(trimmed) && message.is_empty() {
        errors.required(at, "message must be specified if rule contains line breaks");
    }
    let expression = text("messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        errors.required(
            format!("{path}.messageExpression"),
            "messageExpression must be non-empty if specified",
        );
    }
    let reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    if let Some(reason) = rule["reason"].as_str().filter(|reason| !reasons.contains(reason)) {
        errors.not_supported(format!("{path}.reason"), &json!(reason), &reasons);
    }
    let mut refuse = |detail: &str| errors.invalid(format!("{path}.fieldPath"), &json!(field_path), detail);
    if !field_path.is_empty() && field_path.trim().is_empty() {
        refuse(empty);
    }
    if has_line_breaks(field_path) {
        refuse("must not contain line breaks");
    }
    if !field_path.is_empty() && !leads_somewhere(schema, field_path) {
        refuse("must be a valid path");
    }
}

fn has_line_breaks(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

fn leads_somewhere(schema: &Value, field_path: &str) -> bool {
    let names = field_path.replace("['", ".").replace("']", "");
    let mut names = names.trim_start_matches('.').split('.');
    field_path.starts_with(['.', '[']) && names.try_fold(schema, |found, name| member(found, name)).is_some()
}

fn member<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema["properties"].get(name).or_else(|| schema.get("additionalProperties"))
}

impl RulePlace {
    fn below(&self, above: &Value, schema: &Value, path: String, atomic: bool) -> RulePlace {
        let times = self.times.zip(declared_elements(above));
        let uncorrelatable = self.uncorrelatable.clone().or_else(|| atomic.then(|| self.path.clone()));
        RulePlace {
            path: format!("{}{path}", self.path),
            is_resource: schema["x-kubernetes-embedded-resource"] == true,
            times: times.map(|(times, each)| times.saturating_mul(each)),
            uncorrelatable,
        }
    }
}

/// `getCostErrorMessage`
fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
