//! The overlay against what Kubernetes publishes, and defaulting and completion by it.

use serde_json::json;

use super::*;

fn schema(name: &str) -> std::sync::Arc<Schema> {
    Schemas::builtin().get(name).unwrap_or_else(|| panic!("{name} is published"))
}

fn field<'a>(schema: &'a Schema, path: &str) -> &'a Schema {
    path.split('.').fold(schema, |schema, name| {
        let schema = schema.items().unwrap_or(schema);
        schema.property(name).unwrap_or_else(|| panic!("{path}: no {name}"))
    })
}

#[test]
fn every_definition_can_be_read_and_published() {
    let schemas = Schemas::builtin();
    assert!(schemas.names().count() >= 768);
    for name in schemas.names() {
        assert!(schemas.get(name).is_some(), "{name}");
        let published = schemas.published(name).expect(name);
        assert!(!published.to_string().contains("x-kubarium"), "{name}");
    }
    assert!(schemas.get("io.k8s.api.core.v1.Nothing").is_none());
}
