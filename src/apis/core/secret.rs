//! Secret: bytes that are not for everybody.

use std::sync::LazyLock;

use crate::core::config_map;
use crate::kind::{Builtin, Kind};
use crate::print::name;
use crate::quota::measure::ByBareName;
use crate::rules::{RULES, Rules};
use crate::table::{Column, age};
use crate::tree::*;
use crate::validation::Field;
use apimachinery::field_error::FieldErrors;
use apimachinery::object::Object;
use apimachinery::time::Time;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// On a token's Secret: the day on which the token was last used (`serviceaccount.LastUsedLabelKey`).
pub const LEGACY_TOKEN_LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// On a token's Secret: since which day the token counts no more (`serviceaccount.InvalidSinceLabelKey`).
pub const LEGACY_TOKEN_INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The ConfigMap in `kube-system` that says since when such tokens are tracked
/// (`legacytokentracking.ConfigMapName`).
pub const LEGACY_TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// `secrets`
pub static SECRETS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Secret", "secrets", "io.k8s.api.core.v1")
        .selectable_by(&["type"])
        .measured(&ByBareName("secrets"))
        .printed(columns(), cells)
        .defaulted(defaults)
        .governed_by(Rules { validate, validate_update, ..RULES })
        .into()
});

const DEFINITION: &str = "io.k8s.api.core.v1.Secret";

fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::of("Type", "string", DEFINITION, "type"),
        Column::of("Data", "string", DEFINITION, "data"),
        Column::age(),
    ]
}

fn cells(object: &Object, now: Time) -> Vec<Value> {
    let tree = object.to_value();
    vec![name(object), json!(text(&tree, "type")), count(&tree, "data").into(), age(object, now)]
}

/// The type; and `stringData`, which is for writing only, goes into `data`.
fn defaults(secret: &mut Value) {
    if let Some(Value::Object(given)) = remove(secret, "stringData") {
        for (key, value) in given {
            let encoded = BASE64.encode(value.as_str().unwrap_or(""));
            object_mut(secret, "data").insert(key, encoded.into());
        }
    }
    set_if_zero(secret, "type", "Opaque");
}

fn validate(secret: &Value, errors: &mut FieldErrors) {
    let data = Field::of(secret, "data");
    let mut size = 0;
    for (key, value) in data.members() {
        config_map::key_is_right(key, &value, errors);
        size += config_map::decoded_bytes(value.text());
    }
    if size > config_map::MAX_BYTES {
        errors.too_long("data", config_map::MAX_BYTES);
    }
    of_its_type(secret, errors);
}

/// What each type must have.
fn of_its_type(secret: &Value, errors: &mut FieldErrors) {
    let has = |key: &str| secret["data"].get(key).is_some();
    let mut require = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !has(key)) {
            errors.required(format!("data[{key}]"), "");
        }
    };
    match text(secret, "type") {
        "kubernetes.io/dockercfg" => json_config(secret, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => json_config(secret, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            require(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" if secret["data"]["ssh-privatekey"].as_str().is_none_or(str::is_empty) => {
            errors.required("data[ssh-privatekey]", "");
        }
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        "kubernetes.io/service-account-token"
            if annotation(secret, "kubernetes.io/service-account.name").is_empty() =>
        {
            errors.required("metadata.annotations[kubernetes.io/service-account.name]", "");
        }
        _ => {}
    }
}

fn json_config(secret: &Value, key: &str, errors: &mut FieldErrors) {
    let path = format!("data[{key}]");
    let Some(encoded) = secret["data"].get(key).and_then(Value::as_str) else {
        return errors.required(path, "");
    };
    let bytes = BASE64.decode(encoded).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        errors.invalid(path, &json!("<secret contents redacted>"), error.to_string());
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    Field::of(new, "type").immutable(&Field::of(old, "type"), errors);
    config_map::immutable(new, old, &["data"], errors);
}
