//! Packs the OpenAPI definitions of every published type of Kubernetes 1.36 into `OUT_DIR`.
//!
//! In: `manifests/schemas/definitions.json` (fields, descriptions, formats, required), the tables of facts
//! beside it, which no published document has, and `legacy.json`. Out, for `apimachinery::schema` to embed,
//! each a concatenation cut up by `definitions.rs`:
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
use serde_json::{Map, Value};

#[path = "build/legacy.rs"]
mod legacy;

/// Where the definitions, the overlay and the numbers are.
const SCHEMAS: &str = "../../manifests/schemas";

/// The numbers of the fields in protobuf: no part of the overlay.
const PROTOBUF: &str = "protobuf.tsv";

/// Facts with this prefix are for our own decoder and are not published.
const PRIVATE: &str = "x-kubarium-";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/legacy.rs");
    println!("cargo:rerun-if-changed={SCHEMAS}");

    let mut definitions = read_definitions();
    for file in overlay_files() {
        apply_overlay(&mut definitions, &file);
    }
    legacy::add(&mut definitions);
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_out(&definitions, &out);
    let numbers = fs::read(Path::new(SCHEMAS).join(PROTOBUF)).expect("the table is there");
    fs::write(out.join("protobuf.gz"), gzip(&numbers)).expect("OUT_DIR can be written");
}

fn read_definitions() -> BTreeMap<String, Value> {
    let text =
        fs::read(Path::new(SCHEMAS).join("definitions.json")).expect("the file is part of the package");
    serde_json::from_slice(&text).expect("definitions.json is JSON")
}

/// The overlay, in a fixed order so that the output depends on nothing else.
fn overlay_files() -> Vec<PathBuf> {
    let folder = fs::read_dir(SCHEMAS).expect("manifests/schemas is part of the package");
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
    let mut facts = Vec::new();
    let mut published = Vec::new();
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
