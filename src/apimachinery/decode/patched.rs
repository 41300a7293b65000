//! Decoding of what a patch has made of an object that is decoded already: only where the patch reaches.
//!
//! What a patch leaves alone is as decoding would leave it. So the paths of the patch are followed, and what
//! lies at their ends is decoded; which spares a status patch the reading of a whole spec.

use serde::de::DeserializeSeed;
use serde_json::{Map, Value};

use super::context::{DecodeContext, DecodeStep};
use super::typed::{Typed, insert_field};
use crate::schema::{Fields, Schema, Shape, zero_value};

/// What the keys of a strategic merge patch begin with that are no fields.
const DIRECTIVE: char = '$';

type PatchedObject = Map<String, Value>;

/// Decodes in `value`, which is an object, what `patch` reaches.
pub(super) fn decode<'s>(
    schema: &'s Schema,
    value: Value,
    patch: &Value,
    context: &mut DecodeContext<'s>,
) -> Result<Value, serde_json::Error> {
    let (Value::Object(patch), Value::Object(mut object)) = (patch, value) else {
        unreachable!("the caller has looked: both are objects")
    };
    match &schema.resolve().shape {
        Shape::Object(fields) => visit_struct(schema, fields, &mut object, patch, context)?,
        Shape::Map(values) => visit_keys(values, &mut object, patch, context)?,
        _ => return Typed::new(schema, context).deserialize(Value::Object(object)),
    }
    Ok(Value::Object(object))
}

/// Whether only a part of `value` can have changed: no directive has replaced it, or taken its fields away.
pub(super) fn is_partial(value: &Value, patch: &Value) -> bool {
    let (Value::Object(_), Value::Object(patch)) = (value, patch) else { return false };
    !patch.keys().any(|key| key.starts_with(DIRECTIVE))
}

fn visit<'s>(
    schema: &'s Schema,
    value: Value,
    patch: &Value,
    context: &mut DecodeContext<'s>,
) -> Result<Value, serde_json::Error> {
    if is_partial(&value, patch) {
        decode(schema, value, patch, context)
    } else {
        Typed::new(schema, context).deserialize(value)
    }
}

fn visit_struct<'s>(
    schema: &'s Schema,
    fields: &'s Fields,
    object: &mut PatchedObject,
    patch: &PatchedObject,
    context: &mut DecodeContext<'s>,
) -> Result<(), serde_json::Error> {
    let outer = std::mem::replace(&mut context.in_struct, schema.go_struct());
    for (name, patch) in patch {
        let Some(value) = object.remove(name) else { continue };
        let Some((name, field)) = fields.entry(name) else {
            context.unknown(name);
            continue;
        };
        context.path.push(DecodeStep::Field(name));
        let value = visit(field, value, patch, context)?;
        context.path.pop();
        insert_field(object, name, field, value);
    }
    context.in_struct = outer;
    Ok(())
}

fn visit_keys<'s>(
    values: &'s Schema,
    object: &mut PatchedObject,
    patch: &PatchedObject,
    context: &mut DecodeContext<'s>,
) -> Result<(), serde_json::Error> {
    let is_free = matches!(values.shape, Shape::Free);
    for (key, patch) in patch {
        let Some(value) = object.get_mut(key) else { continue };
        context.path.push(DecodeStep::Key(key.clone()));
        let decoded = visit(values, value.take(), patch, context)?;
        context.path.pop();
        *value = match decoded {
            Value::Null if !is_free => zero_value(values),
            decoded => decoded,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{DecodeTarget, decode_merged, decode_patched, decode_value};
    use super::*;
    use crate::patch::{Document, PatchType, apply_document};

    fn schema() -> Schema {
        let text = json!({"type": "string"});
        let item = json!({"type": "object", "x-kubarium-name": "v1.Item", "properties": {
            "name": {"type": "string", "x-kubarium-presence": "always"},
            "count": {"type": "integer"}, "amount": {"x-kubarium-scalar": "quantity"}}});
        let inner = |deeper: Value| {
            json!({"type": "object", "x-kubarium-name": "v1.Inner", "properties": {
                "apiVersion": text, "kind": text, "text": text,
                "kept": {"type": "string", "x-kubarium-presence": "kept"},
                "labels": {"type": "object", "additionalProperties": text},
                "amounts": {"type": "object", "additionalProperties": {"x-kubarium-scalar": "quantity"}},
                "free": {"type": "object", "additionalProperties": true},
                "items": {"type": "array", "items": item, "x-kubernetes-patch-merge-key": "name",
                    "x-kubernetes-patch-strategy": "merge"},
                "deeper": deeper}})
        };
        Schema::from_openapi(&inner(inner(json!({"type": "object", "additionalProperties": item}))))
    }

    /// What may be where a value is expected: mostly something that fits.
    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            4 => "[a-c]".prop_map(Value::from),
            1 => Just(json!("")),
            1 => Just(json!("1000m")),
            1 => Just(Value::Null),
            1 => (0..3).prop_map(Value::from),
        ]
    }

    fn tree() -> impl Strategy<Value = Value> {
        let item = (scalar(), "[a-c]").prop_map(|(amount, name)| json!({"name": name, "amount": amount}));
        let leaf = prop_oneof![
            2 => scalar(),
            2 => proptest::collection::btree_map("[ab]", scalar(), 0..3).prop_map(|map| json!(map)),
            1 => proptest::collection::vec(item, 0..3).prop_map(Value::from),
        ];
        let name = prop::sample::select(vec![
            "text", "kept", "labels", "amounts", "free", "items", "deeper", "none", "a", "$patch",
        ]);
        leaf.prop_recursive(3, 24, 6, move |inner| {
            proptest::collection::btree_map(name.clone(), inner, 0..6).prop_map(|map| json!(map))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        #[test]
        fn what_a_patch_reaches_is_all_that_decoding_changes(old in tree(), patch in tree()) {
            let schema = schema();
            let group = "";
            let version = "v1";
            let kind = "Thing";
            let typed = true;
            let is_registered = |_: &str, _: &str, _: &str| true;
            let target =
                DecodeTarget { group, version, kind, schema: &schema, typed, is_registered: &is_registered };
            let Ok(old) = decode_value(&target, old) else { return Ok(()) };
            let patch_types = [(PatchType::Merge, false), (PatchType::StrategicMerge, true)];
            for (patch_type, is_merged) in patch_types {
                let document = Document::Tree(&patch);
                let Ok(patched) = apply_document(&schema, patch_type, old.value.clone(), document) else {
                    continue;
                };
                let part = decode_patched(&target, patched.value.clone(), &patch, is_merged);
                let whole = if is_merged {
                    decode_merged(&target, patched.value)
                } else {
                    decode_value(&target, patched.value)
                };
                let told = |decoded: Result<super::super::Decoded, super::super::DecodeError>| {
                    decoded.map_err(|error| error.to_string())
                };
                prop_assert_eq!(told(part), told(whole), "{:?} of {}", patch_type, patch);
            }
        }
    }
}
