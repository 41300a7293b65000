//! `x-kubernetes-validations`: rules must compile, be about what can be told apart, and not cost too much.

use serde_json::{Value, json};

use super::cost::{Cost, estimate};
use crate::apimachinery::cel::{Environment, Type};
use crate::apimachinery::field_error::FieldErrors;
use crate::apis::apiextensions::structural::environment;

/// `StaticEstimatedCostLimit`: what one rule may be estimated to cost for a whole object.
const RULE_LIMIT: u64 = 10_000_000;
/// `StaticEstimatedCRDCostLimit`: what all rules of a version may cost.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// Where a schema stands: how often it may occur, and from where on its values cannot be told apart.
#[derive(Clone)]
struct Place {
    path: String,
    is_resource: bool,
    times: u64,
    uncorrelatable: Option<String>,
}

struct Checking<'a> {
    errors: &'a mut FieldErrors,
    total: u64,
}

/// All rules of a version.
pub(super) fn validate(schema: &Value, path: &str, errors: &mut FieldErrors) {
    let mut checking = Checking { errors, total: 0 };
    let place = Place { path: path.into(), is_resource: true, times: 1, uncorrelatable: None };
    checking.walk(schema, &place);
    if checking.total > SCHEMA_LIMIT {
        let detail = too_costly(
            "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
            checking.total,
            SCHEMA_LIMIT,
        );
        errors.forbidden(path, detail);
    }
}

impl Checking<'_> {
    fn walk(&mut self, schema: &Value, place: &Place) {
        let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            self.rule(schema, rule, place, &format!("{}.x-kubernetes-validations[{at}]", place.path));
        }
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let atomic = schema["x-kubernetes-map-type"] == "atomic";
            self.walk(inner, &place.below(inner, format!(".properties[{name}]"), 1, atomic));
        }
        let additional = &schema["additionalProperties"];
        if additional.is_object() {
            let most = super::cost::most_elements(schema, additional, "maxProperties");
            let atomic = schema["x-kubernetes-map-type"] == "atomic";
            self.walk(additional, &place.below(additional, ".additionalProperties".into(), most, atomic));
        }
        let items = &schema["items"];
        if items.is_object() {
            let most = super::cost::most_elements(schema, items, "maxItems");
            let atomic = schema["x-kubernetes-list-type"] != "map";
            self.walk(items, &place.below(items, ".items".into(), most, atomic));
        }
    }

    fn rule(&mut self, schema: &Value, rule: &Value, place: &Place, path: &str) {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        if !self.texts(rule, path) {
            return;
        }
        let optional = rule["optionalOldSelf"].as_bool().unwrap_or(false);
        let Some(environment) = environment(schema, place.is_resource, optional) else {
            let detail = "internal error: failed to retrieve type information for x-kubernetes-validations";
            let path = path.rsplit_once('[').map_or(path, |(head, _)| head);
            self.errors.push(
                path,
                crate::apimachinery::field_error::ErrorType::InternalError,
                String::new(),
                detail,
            );
            return;
        };
        let at = format!("{path}.rule");
        match environment.compile(text("rule")) {
            Err(error) => {
                self.errors.invalid(at, &json!(text("rule")), format!("compilation failed: {error}"));
            }
            Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
                self.errors.invalid(at, &json!(text("rule")), "cel expression must evaluate to a bool");
            }
            Ok(program) => {
                if let (true, Some(within)) = (program.mentions("oldSelf"), &place.uncorrelatable) {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                    );
                    self.errors.invalid(at.clone(), &json!(text("rule")), detail);
                }
                let cost = estimate(&program, schema).times(place.times);
                self.observe("estimated rule cost", &at, cost);
            }
        }
        self.message_expression(&environment, schema, rule, place, path);
        self.field_path(schema, rule, path);
    }

    fn observe(&mut self, what: &str, path: &str, Cost(cost): Cost) {
        self.total = self.total.saturating_add(cost);
        if cost > RULE_LIMIT {
            self.errors.forbidden(path, too_costly(what, cost, RULE_LIMIT));
        }
    }

    /// Whether there is a rule to be compiled.
    fn texts(&mut self, rule: &Value, path: &str) -> bool {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let (trimmed, message) = (text("rule").trim(), text("message"));
        if trimmed.is_empty() {
            self.errors.required(format!("{path}.rule"), "rule is not specified");
            return false;
        }
        let at = format!("{path}.message");
        if !message.is_empty() && message.trim().is_empty() {
            self.errors.invalid(at, &json!(message), "message must be non-empty if specified");
        } else if message.trim().contains('\n') {
            self.errors.invalid(at, &json!(message), "message must not contain line breaks");
        } else if trimmed.contains('\n') && message.is_empty() {
            self.errors.required(at, "message must be specified if rule contains line breaks");
        }
        let reasons =
            ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !reasons.contains(reason)) {
            self.errors.not_supported(format!("{path}.reason"), &json!(reason), &reasons);
        }
        true
    }

    fn message_expression(
        &mut self,
        environment: &Environment,
        schema: &Value,
        rule: &Value,
        place: &Place,
        path: &str,
    ) {
        let Some(expression) = rule["messageExpression"].as_str() else { return };
        let at = format!("{path}.messageExpression");
        if expression.trim().is_empty() {
            self.errors.required(at, "messageExpression must be non-empty if specified");
            return;
        }
        match environment.compile(expression) {
            Err(error) => {
                let detail = format!("messageExpression compilation failed: {error}");
                self.errors.invalid(at, rule, detail);
            }
            Ok(program) if !matches!(program.result_type(), Type::String | Type::Dyn) => {
                self.errors.invalid(at, rule, "messageExpression must evaluate to a string");
            }
            Ok(program) => {
                let cost = estimate(&program, schema).times(place.times);
                self.observe("estimated messageExpression cost", &at, cost);
            }
        }
    }

    fn field_path(&mut self, schema: &Value, rule: &Value, path: &str) {
        let Some(field_path) = rule["fieldPath"].as_str().filter(|path| !path.is_empty()) else { return };
        let at = format!("{path}.fieldPath");
        let mut found = schema;
        let names = field_path.replace("['", ".").replace("']", "");
        for name in names.trim_start_matches('.').split('.') {
            let next = found["properties"].get(name).or(found.get("additionalProperties"));
            let Some(next) = next else {
                let detail =
                    format!("fieldPath must be a valid path: does not refer to a valid field: {field_path}");
                self.errors.invalid(at, &json!(field_path), detail);
                return;
            };
            found = next;
        }
    }
}

impl Place {
    fn below(&self, schema: &Value, path: String, times: u64, atomic: bool) -> Place {
        let uncorrelatable = self.uncorrelatable.clone().or_else(|| atomic.then(|| self.path.clone()));
        Place {
            path: format!("{}{path}", self.path),
            is_resource: schema["x-kubernetes-embedded-resource"] == true,
            times: self.times.saturating_mul(times),
            uncorrelatable,
        }
    }
}

/// `getCostErrorMessage`
fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
