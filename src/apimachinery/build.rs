//! Generates the OpenAPI definitions of every published type of Kubernetes 1.36 into `OUT_DIR`.
//!
//! In: the types of k8s-openapi (fields, descriptions, formats, required) and the facts of
//! `manifests/schemas` that they lack. Out, for `apimachinery::schema` to embed, each a concatenation cut
//! up by `definitions.rs`:
//! - `definitions.facts`: compact JSON without descriptions, read when a kind is first decoded or patched;
//! - `definitions.published`: one gzip a definition, read only when OpenAPI documents are made.
//!
//! And for `apimachinery::protobuf`, which reads it when the first such body arrives, `protobuf.gz`: the
//! numbers of the fields as they stand in the manifests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::{Compression, write::GzEncoder};
use k8s_openapi::{ListableResource, Resource};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

#[path = "build/kinds.rs"]
mod kinds;
#[path = "build/legacy.rs"]
mod legacy;

/// The numbers of the fields in protobuf: no part of the overlay.
const PROTOBUF: &str = "protobuf.tsv";

/// The kinds that upstream publishes with required metadata.
const METADATA_REQUIRED: [&str; 2] =
    ["io.k8s.api.core.v1.Event", "io.k8s.api.resource.v1alpha3.ResourcePoolStatusRequest"];

/// Facts with this prefix are for our own decoder and are not published.
const PRIVATE: &str = "x-kubarium-";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/kinds.rs");
    println!("cargo:rerun-if-changed=build/legacy.rs");
    println!("cargo:rerun-if-changed=../../manifests/schemas");

    let mut definitions = Definitions::new();
    kinds::register(&mut definitions);
    let mut definitions = definitions.finish();
    for file in overlay_files() {
        apply_overlay(&mut definitions, &file);
    }
    legacy::add(&mut definitions);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_out(&definitions, &out);
    let numbers = fs::read(Path::new("../../manifests/schemas").join(PROTOBUF)).expect("the table is there");
    fs::write(out.join("protobuf.gz"), gzip(&numbers)).expect("OUT_DIR can be written");
}

/// Collects kinds; every type that they mention is gathered by the generator.
pub struct Definitions {
    generator: SchemaGenerator,
    kinds: BTreeMap<String, Value>,
    lists: BTreeMap<String, Value>,
}

impl Definitions {
    fn new() -> Self {
        let generator = SchemaSettings::default().into_generator();
        Self { generator, kinds: BTreeMap::new(), lists: BTreeMap::new() }
    }

    /// A kind without a list, or a list itself.
    pub fn kind<T: JsonSchema + Resource>(&mut self) {
        self.plain::<T>();
        let gvk = group_version_kind(T::GROUP, T::VERSION, T::KIND);
        self.kinds.insert(T::schema_name().into_owned(), gvk);
    }

    /// A kind, and its list kind beside it.
    pub fn listed<T: JsonSchema + ListableResource>(&mut self) {
        self.kind::<T>();
        let item = T::schema_name().into_owned();
        let name = format!("{}{}", item.strip_suffix(T::KIND).expect("ends in its kind"), T::LIST_KIND);
        self.kinds.insert(name.clone(), group_version_kind(T::GROUP, T::VERSION, T::LIST_KIND));
        self.lists.insert(name, list_schema(T::KIND, T::LIST_KIND, &item));
    }

    /// A type that is no kind of its own group, such as the options of a delete.
    pub fn plain<T: JsonSchema>(&mut self) {
        let _: Schema = self.generator.subschema_for::<T>();
    }

    fn finish(mut self) -> BTreeMap<String, Value> {
        self.plain::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta>();
        let mut all: BTreeMap<String, Value> = self.generator.take_definitions(true).into_iter().collect();
        all.extend(self.lists);
        for schema in all.values_mut() {
            tidy(schema);
        }
        for (name, gvk) in self.kinds {
            let schema = all.get_mut(&name).unwrap_or_else(|| panic!("{name} has no schema"));
            schema["x-kubernetes-group-version-kind"] = json!([gvk]);
            if !METADATA_REQUIRED.contains(&&*name) {
                release_metadata(schema);
            }
        }
        all
    }
}

/// The types hold the metadata of every kind by value, which reads as required; upstream publishes so only of
/// [`METADATA_REQUIRED`]. It is written all the same.
fn release_metadata(schema: &mut Value) {
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else { return };
    let before = required.len();
    required.retain(|field| field != "metadata");
    let (is_released, is_empty) = (required.len() < before, required.is_empty());
    if is_released {
        schema["properties"]["metadata"]["x-kubarium-presence"] = "always".into();
    }
    if is_empty && let Some(schema) = schema.as_object_mut() {
        schema.remove("required");
    }
}

fn group_version_kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "kind": kind, "version": version})
}

fn list_schema(kind: &str, list_kind: &str, item: &str) -> Value {
    let more = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
    json!({
        "description": format!("{list_kind} is a list of {kind}."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": described("string", format!("The group and version of this list. More info: {more}#resources")),
            "kind": described("string", format!("The kind of this list: {list_kind}. More info: {more}#types-kinds")),
            "metadata": {
                "$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
                "description": format!("Metadata of the list. More info: {more}#types-kinds"),
            },
            "items": {
                "type": "array",
                "description": format!("The {kind} objects."),
                "items": {"$ref": format!("#/$defs/{item}")},
            },
        },
    })
}

fn described(kind: &str, description: String) -> Value {
    json!({"type": kind, "description": description})
}

/// Brings a generated schema to the form that Kubernetes publishes: references by definition name, formats
/// as its generator writes them, no alternatives that a structural schema cannot hold.
fn tidy(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if let Some(Value::String(reference)) = map.get_mut("$ref") {
        *reference = reference.replace("#/$defs/", "#/definitions/");
    }
    for keyword in ["oneOf", "anyOf", "x-kubernetes-int-or-string"] {
        if map.get(keyword).is_some_and(|value| value.is_array() || value.is_boolean()) {
            map.remove(keyword);
        }
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = map.get_mut(nested) {
            tidy(nested);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
}

/// The overlay, in a fixed order so that the output depends on nothing else.
fn overlay_files() -> Vec<PathBuf> {
    let folder = fs::read_dir("../../manifests/schemas").expect("manifests/schemas is part of the package");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("manifests/schemas can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .filter(|path| !path.ends_with(PROTOBUF))
        .collect();
    files.sort();
    files
}

/// One fact a line: definition, field (or `-` for the type itself), fact, value as JSON; `#` begins a
/// comment. A line that fits nothing ends the build, so that the overlay cannot drift from the types.
fn apply_overlay(definitions: &mut BTreeMap<String, Value>, file: &Path) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Err(problem) = apply_fact(definitions, line) {
            panic!("{}:{}: {problem}: {line}", file.display(), number + 1);
        }
    }
}

fn apply_fact(definitions: &mut BTreeMap<String, Value>, line: &str) -> Result<(), String> {
    let [definition, field, fact, value] =
        line.split('\t').collect::<Vec<_>>().try_into().map_err(|_| "not four columns".to_owned())?;
    let value: Value =
        serde_json::from_str(value).map_err(|error| format!("the value is not JSON: {error}"))?;
    let schema = definitions.get_mut(definition).ok_or("no such definition")?;
    let target = match field {
        "-" => schema,
        _ => schema["properties"].get_mut(field).ok_or("no such field")?,
    };
    let target: &mut Map<String, Value> = target.as_object_mut().ok_or("not a schema")?;
    if fact == "required" {
        return set_required(target, value);
    }
    if let Some(member) = [("enum of items", "items"), ("enum of values", "additionalProperties")]
        .iter()
        .find_map(|(name, member)| (*name == fact).then_some(*member))
    {
        let inner = target.get_mut(member).and_then(Value::as_object_mut).ok_or("no list or map")?;
        inner.insert("enum".into(), value);
        return Ok(());
    }
    if let (true, Some(values)) = (fact == "enum", value.as_array()) {
        describe_values(target, values);
    }
    target.insert(fact.to_owned(), value);
    Ok(())
}

/// Where the types ask for more than upstream publishes.
fn set_required(target: &mut Map<String, Value>, value: Value) -> Result<(), String> {
    let fields = |value: &Value| value.as_array().cloned().ok_or("required is a list of fields");
    let (left, known) =
        (fields(&value)?, target.get("required").map(fields).transpose()?.unwrap_or_default());
    if left.len() >= known.len() || left.iter().any(|field| !known.contains(field)) {
        return Err("the types do not ask for more".into());
    }
    match left.is_empty() {
        true => target.remove("required"),
        false => target.insert("required".into(), value),
    };
    Ok(())
}

/// As upstream's generator ends the description of an enumeration.
fn describe_values(target: &mut Map<String, Value>, values: &[Value]) {
    let mut description = target.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    description.push_str("\n\nPossible enum values:");
    for value in values {
        let _ = write!(description, "\n - `{value}`");
    }
    target.insert("description".into(), description.into());
}

fn write_out(definitions: &BTreeMap<String, Value>, out: &Path) {
    let (mut facts, mut published) = (Vec::new(), Vec::new());
    let mut index = String::from("&[\n");
    for (name, schema) in definitions {
        let (facts_start, published_start) = (facts.len(), published.len());
        let mut bare = schema.clone();
        strip(&mut bare, &|key| key == "description");
        serde_json::to_writer(&mut facts, &bare).expect("a schema is JSON");
        let mut public = schema.clone();
        strip(&mut public, &|key| key.starts_with(PRIVATE));
        published.extend(gzip(&serde_json::to_vec(&public).expect("a schema is JSON")));
        let _ = writeln!(
            index,
            "    Definition {{ name: {name:?}, facts: {facts_start}..{}, published: {published_start}..{} }},",
            facts.len(),
            published.len()
        );
    }
    index.push(']');
    let write = |file: &str, bytes: &[u8]| fs::write(out.join(file), bytes).expect("OUT_DIR can be written");
    write("definitions.facts", &facts);
    write("definitions.published", &published);
    write("definitions.rs", index.as_bytes());
}

/// Removes the keywords for which `unwanted` holds from a schema, never the fields that bear such a name.
fn strip(schema: &mut Value, unwanted: &dyn Fn(&str) -> bool) {
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !unwanted(key));
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = map.get_mut(nested) {
            strip(nested, unwanted);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(|property| strip(property, unwanted));
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}
