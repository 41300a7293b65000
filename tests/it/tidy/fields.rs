//! Paths of fields in the code are made of names that the published schemas know: a slip of the pen would read as
//! Go's zero, and nobody would notice.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;

use super::source::{Source, root};
use super::tables::{FIELD_ROOMS, NOT_FIELDS};

#[test]
fn every_field_path_is_made_of_names_that_the_schemas_know() {
    let names = names();
    let path = Regex::new(r"^[a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)+$").unwrap();
    let mut count = 0;
    let mut unknown = BTreeSet::new();
    let mut allowed = BTreeSet::new();
    let in_room = |source: &&Source| FIELD_ROOMS.iter().any(|room| source.path.starts_with(room));
    for source in Source::all().iter().filter(in_room).filter(|source| !source.is_test()) {
        let is_path = |text: &str| path.is_match(text) && !is_domain(text);
        for (line, literal) in source.literals.iter().filter(|(_, text)| is_path(text)) {
            count += 1;
            for name in literal.split('.').filter(|name| !names.contains(*name)) {
                match NOT_FIELDS.iter().find(|known| **known == name) {
                    Some(known) => drop(allowed.insert(*known)),
                    None => drop(unknown.insert(format!("{}:{line}: {name} in {literal:?}", source.path))),
                }
            }
        }
    }
    assert!(count > 1000, "the field paths are not where they should be: {count}");
    assert!(
        unknown.is_empty(),
        "no schema has these:\n{}",
        unknown.into_iter().collect::<Vec<_>>().join("\n")
    );
    let idle: Vec<_> = NOT_FIELDS.iter().filter(|name| !allowed.contains(**name)).collect();
    assert!(idle.is_empty(), "take these off NOT_FIELDS in tests/it/tidy/tables.rs: {idle:?}");
}

/// Groups, domains and the definitions of OpenAPI: names with dots that are no paths.
fn is_domain(text: &str) -> bool {
    text.ends_with(".io") || text.starts_with("io.k8s.") || text.starts_with("deprecated.")
}

/// The names of all fields of all published types.
fn names() -> BTreeSet<String> {
    let table = fs::read_to_string(root().join("manifests/schemas/protobuf.tsv")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| row.split('\t').nth(1)).map(str::to_owned).collect()
}
