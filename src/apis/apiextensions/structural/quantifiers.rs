//! `allOf`, `anyOf`, `oneOf`, `not` (`validate/schema_props.go`).

use serde_json::Value;

use super::Structural;
use apimachinery::field_error::FieldErrors;

impl Structural {
    pub(super) fn validate_quantifiers(&self, path: &str, value: &Value, errors: &mut FieldErrors) {
        let quantifiers = &self.quantifiers;
        if !quantifiers.any_of.is_empty() {
            let tried = try_all(&quantifiers.any_of, path, value);
            if tried.iter().all(|found| !found.is_empty()) {
                refuse(errors, format!("{path:?} must validate at least one schema (anyOf)"));
                errors.extend(best(tried));
            }
        }
        if !quantifiers.one_of.is_empty() {
            let tried = try_all(&quantifiers.one_of, path, value);
            let valid = tried.iter().filter(|found| found.is_empty()).count();
            let message = format!("{path:?} must validate one and only one schema (oneOf)");
            match valid {
                1 => {}
                0 => {
                    refuse(errors, format!("{message}. Found none valid"));
                    errors.extend(best(tried));
                }
                valid => refuse(errors, format!("{message}. Found {valid} valid alternatives")),
            }
        }
        if !quantifiers.all_of.is_empty() {
            let tried = try_all(&quantifiers.all_of, path, value);
            let valid = tried.iter().filter(|found| found.is_empty()).count();
            let (all, message) = (tried.len(), format!("{path:?} must validate all the schemas (allOf)"));
            tried.into_iter().for_each(|found| errors.extend(found));
            if valid == 0 {
                refuse(errors, format!("{message}. None validated"));
            } else if valid < all {
                refuse(errors, message);
            }
        }
        if let Some(not) = &quantifiers.not {
            let mut found = FieldErrors::default();
            not.validate_value(path, value, None, &mut found);
            if found.is_empty() {
                refuse(errors, format!("{path:?} must not validate the schema (not)"));
            }
        }
    }
}

fn try_all(schemas: &[Structural], path: &str, value: &Value) -> Vec<FieldErrors> {
    let attempt = |schema: &Structural| {
        let mut found = FieldErrors::default();
        schema.validate_value(path, value, None, &mut found);
        found
    };
    schemas.iter().map(attempt).collect()
}

/// What was wrong with the alternative that came nearest.
fn best(tried: Vec<FieldErrors>) -> FieldErrors {
    tried.into_iter().min_by_key(|found| found.0.len()).unwrap_or_default()
}

fn refuse(errors: &mut FieldErrors, message: String) {
    errors.invalid("<nil>", &"".into(), message);
}
