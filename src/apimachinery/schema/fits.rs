//! `fits`: whether a tree is as decoding would leave it, so that it need not be decoded.

use golang::base64_text::is_base64;
use serde_json::Value;

use super::types::{Schema, Shape};
use crate::quantity::Quantity;
use crate::time;

/// How long a `metav1.Time` is as it is written.
const TIME_LENGTH: usize = "2006-01-02T15:04:05Z".len();
/// How long a `metav1.MicroTime` is.
const MICRO_TIME_LENGTH: usize = "2006-01-02T15:04:05.000000Z".len();

/// Whether every value in a tree is of the kind of JSON that its schema wants, and written as decoding writes
/// it: no field unknown, quantities and times as texts in their usual form. Nulls of fields are let pass,
/// since [`complete`](super::complete) takes them away.
pub fn fits(schema: &Schema, value: &Value) -> bool {
    match (&schema.resolve().shape, value) {
        (Shape::Free, _) => true,
        (Shape::Object(fields), Value::Object(map)) => map
            .iter()
            .all(|(name, value)| fields.get(name).is_some_and(|field| value.is_null() || fits(field, value))),
        (Shape::Map(values), Value::Object(map)) => map.values().all(|value| fits(values, value)),
        (Shape::List(items), Value::Array(list)) => list.iter().all(|value| fits(items, value)),
        (Shape::String | Shape::IntOrString, Value::String(_)) => true,
        (Shape::Bytes, Value::String(text)) => is_base64(text),
        (Shape::Quantity, Value::String(text)) => {
            Quantity::parse(text).is_ok_and(|quantity| quantity.to_string() == *text)
        }
        (Shape::Time, Value::String(text)) => text.len() == TIME_LENGTH && is_time(text),
        (Shape::MicroTime, Value::String(text)) => text.len() == MICRO_TIME_LENGTH && is_time(text),
        (Shape::Boolean, Value::Bool(_)) | (Shape::Number, Value::Number(_)) => true,
        (Shape::Integer64, Value::Number(number)) => number.as_i64().is_some(),
        (Shape::Integer32 | Shape::IntOrString, Value::Number(number)) => {
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        _ => false,
    }
}

/// In UTC, as it is written here.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && time::parse(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schemas;
    use serde_json::json;

    fn pod_fits(container: Value) -> bool {
        let schema = Schemas::reference("io.k8s.api.core.v1.Pod");
        fits(schema, &json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}}))
    }

    #[test]
    fn what_decoding_would_change_does_not_fit() {
        let asks = |cpu: Value| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        assert!(pod_fits(asks(json!("500m"))));
        assert!(pod_fits(
            json!({"name": "c", "ports": [{"containerPort": 80}], "stdin": true, "args": ["a"]})
        ));
        assert!(pod_fits(json!({"name": "c", "lifecycle": null})));
        for container in [
            asks(json!(1)),
            asks(json!("1000m")),
            asks(json!("much")),
            asks(Value::Null),
            json!({"name": 1}),
            json!({"name": "c", "colour": "red"}),
            json!({"name": "c", "args": [null]}),
            json!({"name": "c", "ports": [{"containerPort": "80"}]}),
            json!({"name": "c", "ports": [{"containerPort": 3_000_000_000_u32}]}),
            json!("c"),
        ] {
            assert!(!pod_fits(container.clone()), "{container}");
        }
        let metadata = Schemas::reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        for (time, is_usual) in [
            ("2026-01-01T00:00:00Z", true),
            ("2026-01-01T01:00:00+01:00", false),
            ("xxxxxxxxxxxxxxxxxxxZ", false),
            ("2026-13-01T00:00:00Z", false),
        ] {
            assert_eq!(fits(metadata, &json!({"creationTimestamp": time})), is_usual, "{time}");
        }
        let secret = Schemas::reference("io.k8s.api.core.v1.Secret");
        for (bytes, is_usual) in
            [("", true), ("YQ==", true), ("YWI=", true), ("!!", false), ("YQ", false), ("Y===", false)]
        {
            assert_eq!(fits(secret, &json!({"data": {"k": bytes}})), is_usual, "{bytes}");
        }
    }
}
