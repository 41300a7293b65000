//! `metadata.initializers` of a body: a field that no schema knows any more, and that only
//! `--feature-gates=Initializers=true` reads.

use bytes::Bytes;
use serde_json::Value;

use apimachinery::decode::BodyFormat;
use apimachinery::yaml;

const UNKNOWN_FIELD: &str = "unknown field \"metadata.initializers\"";

/// What a body says of initializers: a field that no schema knows any more.
pub(crate) fn of_body(body: &Bytes, format: BodyFormat) -> Option<Value> {
    const NAME: &[u8] = b"initializers";
    if !body.windows(NAME.len()).any(|window| window == NAME) {
        return None;
    }
    let tree: Value = match format {
        BodyFormat::Json => serde_json::from_slice(body).ok()?,
        BodyFormat::Yaml => yaml::to_json(body).ok()?.value,
        BodyFormat::Protobuf => return None,
    };
    of_tree(&tree)
}

/// The initializers of a tree.
pub(crate) fn of_tree(tree: &Value) -> Option<Value> {
    tree.pointer("/metadata/initializers").filter(|initializers| !initializers.is_null()).cloned()
}

/// Puts it back, after whoever did not know it took it away and complained.
pub(crate) fn put_back(object: &mut Value, initializers: Option<Value>, complaints: &mut Vec<String>) {
    let Some(initializers) = initializers else { return };
    complaints.retain(|complaint| complaint != UNKNOWN_FIELD);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("initializers".into(), initializers);
    }
}
