//! Type checking of ValidatingAdmissionPolicies: whether their expressions ask for fields that the matched
//! kinds do not have (`policy/validating.TypeChecker`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::expressions::{environment, with_variables};
use crate::apiextensions::custom_resource::CustomResource;
use crate::kind::Kind;
use crate::scheme::Scheme;
use crate::tree::{at, items, text, texts};
use apimachinery::gvk::GroupVersion;
use apimachinery::schema::{Schema, Schemas, Shape};
use cel::schema::declared_type;
use cel::{Environment, Type};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// So many kinds are looked at.
const MAX_TYPES: usize = 10;
/// Definitions that contain themselves are followed so deep.
const MAX_DEPTH: usize = 12;

/// The `expressionWarnings` of a policy's spec.
pub fn check(spec: &Value, scheme: &Scheme, schemas: &Schemas) -> Vec<Value> {
    let kinds = kinds(spec, scheme);
    let environments: Vec<(String, Environment)> = kinds
        .iter()
        .filter_map(|kind| {
            let object = type_of(kind, schemas)?;
            Some((kind.gvk().to_string(), typed(spec, scheme, schemas, &object)))
        })
        .collect();
    let mut warnings = Vec::new();
    for (index, validation) in items(spec, "validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let expression = text(validation, field);
            let warn = |(name, environment): &(String, Environment)| {
                let error = environment.compile(expression).err()?;
                Some(format!("{name}: {error}"))
            };
            if expression.is_empty() {
                continue;
            }
            let found: Vec<String> = environments.iter().filter_map(warn).collect();
            if !found.is_empty() {
                let field_ref = format!("spec.validations[{index}].{field}");
                warnings.push(json!({"fieldRef": field_ref, "warning": found.join("\n")}));
            }
        }
    }
    warnings
}

/// The kinds that the rules name without wildcards, in order.
fn kinds(spec: &Value, scheme: &Scheme) -> Vec<std::sync::Arc<Kind>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for rule in items(spec, "matchConstraints.resourceRules") {
        let plain = |field: &str| -> Vec<&str> {
            let list = texts(rule, field);
            if list.iter().any(|text| text.contains('*')) { vec![] } else { list }
        };
        let resources = texts(rule, "resources").into_iter().filter(|name| !name.contains(['*', '/']));
        for resource in resources {
            for group in plain("apiGroups") {
                for version in plain("apiVersions") {
                    let kind = scheme.resource(group, version, resource);
                    found.extend(kind.filter(|kind| seen.insert(kind.gvk())));
                }
            }
        }
    }
    found.sort_by_key(|kind| kind.gvk());
    found.truncate(MAX_TYPES);
    found
}

/// The environment in which `object` is of a kind.
fn typed(spec: &Value, scheme: &Scheme, schemas: &Schemas, object: &Type) -> Environment {
    let param_kind = at(spec, "paramKind");
    let kind = GroupVersion::parse(text(param_kind, "apiVersion"))
        .and_then(|version| scheme.kind(&version, text(param_kind, "kind")));
    let params = kind.and_then(|kind| type_of(&kind, schemas));
    let mut environment = environment(!param_kind.is_null(), true)
        .with_variable("object", object.clone())
        .with_variable("oldObject", object.clone());
    if let Some(params) = params {
        environment = environment.with_variable("params", params);
    }
    with_variables(environment, items(spec, "variables")).0
}

/// What expressions may ask of an object of a kind; nothing for a custom kind whose schema says nothing.
fn type_of(kind: &Kind, schemas: &Schemas) -> Option<Type> {
    match CustomResource::of(kind) {
        Some(custom) => custom_type(custom, schemas),
        None => Some(declared(&*schemas.get(&kind.definition)?, 0)),
    }
}

/// As a definition declares it, with the whole metadata that is published with it.
fn custom_type(custom: &CustomResource, schemas: &Schemas) -> Option<Type> {
    let Type::Object(root) = declared_type(&custom.openapi(), true)? else { return None };
    let metadata = declared(&*schemas.get(OBJECT_META)?, 0);
    let own = root.fields.iter().filter(|(name, _)| ***name != *"metadata");
    let fields = own.map(|(name, of)| (&**name, of.clone())).chain([("metadata", metadata)]);
    Some(Type::object(&root.name, fields))
}

/// `SchemaDeclType`, for the schemas of built-in kinds.
fn declared(schema: &Schema, depth: usize) -> Type {
    if depth > MAX_DEPTH {
        return Type::Dyn;
    }
    let schema = schema.resolve();
    match &schema.shape {
        Shape::Free | Shape::Reference(_) | Shape::IntOrString => Type::Dyn,
        Shape::Object(fields) => {
            let typed = fields.iter().map(|(name, field)| (name, declared(field, depth + 1)));
            Type::object("object", typed)
        }
        Shape::Map(values) => Type::map_of(declared(values, depth + 1)),
        Shape::List(item) => Type::list(declared(item, depth + 1)),
        Shape::String | Shape::Quantity => Type::String,
        Shape::Bytes => Type::Bytes,
        Shape::Time | Shape::MicroTime => Type::Timestamp,
        Shape::Boolean => Type::Bool,
        Shape::Integer32 | Shape::Integer64 => Type::Int,
        Shape::Number => Type::Double,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiextensions::kinds::served;
    use apimachinery::object::Object;

    #[test]
    fn custom_kinds_have_the_fields_of_their_definition() {
        let size = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": size}});
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let names = json!({"plural": "discs", "singular": "disc", "kind": "Disc", "listKind": "DiscList"});
        let definition = json!({"metadata": {"name": "discs.example.com", "uid": "u"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
            "status": {"acceptedNames": names}});
        let object = Object::from_value(&definition, vec![]).unwrap();
        let crd = serde_json::from_value(definition).unwrap();
        let scheme = Scheme::builtin();
        served(&object, &crd).all().for_each(|kind| scheme.register(kind.clone()));
        let rule = json!({"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["discs"]});
        let check = |expression: &str| {
            let spec = json!({"matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": expression}]});
            let warnings = check(&spec, &scheme, &Schemas::builtin());
            warnings.first().map(|warning| text(warning, "warning").lines().next().unwrap_or("").to_owned())
        };
        assert_eq!(check("object.spec.size > 1 && object.metadata.labels['a'] == object.kind"), None);
        let undefined = "example.com/v1, Kind=Disc: ERROR: <input>:1:12: undefined field 'colour'";
        assert_eq!(check("object.spec.colour == 'red'").as_deref(), Some(undefined));
        assert!(
            check("object.spec.size == 'large'").unwrap().contains("found no matching overload for '_==_'")
        );
    }

    #[test]
    fn fields_that_are_not_there_are_told_for_each_kind() {
        let spec = json!({
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments", "replicasets/*"]},
                {"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["pods"]},
            ]},
            "variables": [{"name": "wanted", "expression": "object.spec.replicas"}],
            "validations": [
                {"expression": "object.replicas > 1"},
                {"expression": "variables.wanted > 1", "messageExpression": "'of ' + object.spec.paused"},
                {"expression": "object.spec.template.spec.containers.all(c, c.image != '')"},
                {"expression": "object.metadata.labels['a'] == 'b' && object.kind == 'Deployment'"},
            ],
        });
        let warnings = check(&spec, &Scheme::builtin(), &Schemas::builtin());
        let texts: Vec<(&str, &str)> = warnings
            .iter()
            .map(|warning| (text(warning, "fieldRef"), text(warning, "warning").lines().next().unwrap_or("")))
            .collect();
        let undefined = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'";
        assert_eq!(texts[0], ("spec.validations[0].expression", undefined));
        assert_eq!(texts[1].0, "spec.validations[1].messageExpression");
        assert!(
            texts[1].1.contains("found no matching overload for '_+_' applied to '(string, bool)'"),
            "{texts:?}"
        );
        assert_eq!(texts.len(), 2, "{texts:?}");
    }
}
