//! What Go's types say of fields beyond what is published: defaults, enumerations, names, and what is written
//! when there is nothing.

use serde_json::Value;

use crate::checkout::{Checkout, Problem};
use crate::definitions::{self, Definitions};
use crate::go::{Declared, Expr, GoField, Kind};
use crate::table::Table;

/// A field that is both published and declared.
struct Subject<'a> {
    definition: &'a str,
    /// Its published schema.
    schema: &'a Value,
    is_required: bool,
    field: &'a GoField,
}

/// Where tag and type do not say it: an empty list of managed fields tells the server to forget them.
const BY_HAND: [(&str, &str, &str); 1] =
    [("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "managedFields", "kept")];

/// A fact about a field: what it is called, and its value as JSON.
type Fact = (&'static str, Value);

/// `+default` markers.
///
/// # Errors
/// No definitions.
pub(crate) fn defaults(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    table(checkout, before, &|subject| {
        let marker = subject.field.markers.iter().find_map(|marker| marker.strip_prefix("default="))?;
        let value = match marker.strip_prefix("ref(").and_then(|rest| rest.strip_suffix(')')) {
            Some(name) => checkout.packages.constant(subject.definition, name)?.into(),
            None => serde_json::from_str(marker).ok()?,
        };
        Some(("default", value))
    })
}

/// `+enum` markers.
///
/// # Errors
/// No definitions.
pub(crate) fn enums(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    table(checkout, before, &|subject| {
        let (fact, of) = match without_pointers(&subject.field.of) {
            Expr::Slice(items) => ("enum of items", *items),
            Expr::Map(_, values) => ("enum of values", *values),
            other => ("enum", other),
        };
        let of = checkout.packages.resolved(&of);
        let is_enum = checkout.packages.markers(&of).iter().any(|marker| marker == "enum");
        is_enum.then(|| (fact, checkout.packages.constants(&of).into()))
    })
}

/// The names that Go prints for types, where they are not those that [`obvious`] finds.
///
/// # Errors
/// No definitions.
pub(crate) fn types(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    table(checkout, before, &|subject| {
        let name = go_name(checkout, &subject.field.of);
        (name != obvious(subject.schema)).then(|| ("x-kubarium-go-type", name.into()))
    })
}

/// What a round trip through the types writes when there is nothing.
///
/// # Errors
/// No definitions.
pub(crate) fn presence(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    table(checkout, before, &|subject| {
        let written = written(checkout, subject)?;
        (written != expected(subject)).then(|| ("x-kubarium-presence", written.into()))
    })
}

/// One row for each fact that is found. Rows about packages that the checkout does not have stay.
fn table(
    checkout: &Checkout,
    before: &str,
    find: &dyn Fn(&Subject<'_>) -> Option<Fact>,
) -> Result<String, Problem> {
    let all = definitions::own(checkout)?;
    let mut table = Table::with_head_of(before);
    table.keep(before, |definition| checkout.packages.definition(definition).is_none());
    let mut is_any_known = false;
    for (definition, schema) in &all {
        let Some(fields) = fields(checkout, &all, definition) else { continue };
        is_any_known = true;
        for field in &fields {
            let Some(published) = schema["properties"].get(&field.json) else { continue };
            let is_required = is_required(schema, &field.json);
            let subject = Subject { definition, schema: published, is_required, field };
            if let Some((fact, value)) = find(&subject) {
                table.add(&[subject.definition, &field.json, fact, &value.to_string()]);
            }
        }
    }
    match is_any_known {
        true => Ok(table.to_string()),
        false => Err(Problem::Missing("staging/src/k8s.io/api with Go's types".into())),
    }
}

/// The fields of a definition that is published with fields, those of embedded structs among them.
fn fields(checkout: &Checkout, all: &Definitions, definition: &str) -> Option<Vec<GoField>> {
    all[definition].get("properties")?;
    let mut found = Vec::new();
    flatten(checkout, checkout.packages.fields_of(definition)?, &mut found);
    Some(found)
}

fn flatten(checkout: &Checkout, fields: Vec<GoField>, into: &mut Vec<GoField>) {
    for field in fields {
        match field.json.is_empty() {
            true => flatten(checkout, checkout.packages.fields(&field.of).unwrap_or_default(), into),
            false => into.push(field),
        }
    }
}

fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().into_iter().flatten().any(|name| name == field)
}

fn without_pointers(of: &Expr) -> Expr {
    match of {
        Expr::Pointer(of) => without_pointers(of),
        other => other.clone(),
    }
}

/// As `%v` of a `reflect.Type` prints it; what hangs on a pointer is decoded as what it points to.
fn go_name(checkout: &Checkout, of: &Expr) -> String {
    match checkout.packages.resolved(of) {
        Expr::Basic(name) if name == "byte" => "uint8".into(),
        Expr::Basic(name) if name == "interface{}" => "interface {}".into(),
        Expr::Basic(name) => name,
        Expr::Pointer(of) => go_name(checkout, &of),
        Expr::Slice(of) => format!("[]{}", go_name(checkout, &of)),
        Expr::Map(key, of) => format!("map[{}]{}", go_name(checkout, &key), go_name(checkout, &of)),
        Expr::Named { package, name } => format!("{}.{name}", package.rsplit('/').next().unwrap_or_default()),
    }
}

/// What kubarium takes for the name of the type when no table says otherwise: as `Schema::go_type` does.
fn obvious(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let mut parts = name.rsplit('.');
        let (last, before) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return format!("{before}.{last}");
    }
    match (text("type"), text("format")) {
        ("object", _) => match schema.get("additionalProperties") {
            Some(values) => format!("map[string]{}", obvious(values)),
            None => "map[string]interface {}".into(),
        },
        ("array", _) => format!("[]{}", obvious(&schema["items"])),
        ("string", "byte") => "[]uint8".into(),
        ("string", _) => "string".into(),
        ("boolean", _) => "bool".into(),
        ("integer", "int32") => "int32".into(),
        ("integer", _) => "int64".into(),
        ("number", _) => "float64".into(),
        _ => "interface {}".into(),
    }
}

/// What the tag and the type make of a field without a value.
fn written(checkout: &Checkout, subject: &Subject<'_>) -> Option<&'static str> {
    let field = subject.field;
    let by_hand = BY_HAND
        .iter()
        .find(|(definition, name, _)| (*definition, *name) == (subject.definition, &field.json));
    if let Some((_, _, presence)) = by_hand {
        return Some(presence);
    }
    Some(match (field.is_omitted, checkout.packages.kind(&field.of)?) {
        (true, Kind::Pointer) => "kept",
        (true, Kind::Struct) if field.is_zero_omitted => "kept",
        (true, Kind::Struct) => "always",
        (true, Kind::Scalar | Kind::Collection) => "omitted",
        (false, Kind::Pointer) => "null",
        (false, _) => "always",
    })
}

/// What kubarium expects when the table says nothing: as `schema::lower` does.
fn expected(subject: &Subject<'_>) -> &'static str {
    match (subject.is_required, subject.schema.get("$ref").is_some()) {
        (true, _) => "always",
        (false, true) => "kept",
        (false, false) => "omitted",
    }
}

/// Whether a type is a list with a name of its own that protobuf makes a message.
pub(crate) fn is_named_list(checkout: &Checkout, of: &Expr) -> bool {
    let is_message = checkout.packages.markers(of).iter().any(|marker| marker == "protobuf.nullable=true");
    is_message && matches!(checkout.packages.declared(of), Some(Declared::Name(Expr::Slice(_))))
}
