//! `src/apimachinery/feature_gates.txt`: from the list that upstream's own tests hold its gates against, and from
//! that of the Go client.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::checkout::{Checkout, Problem};

/// The list.
pub(crate) const LIST: &str = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml";

/// The gates of the Go client, which every component takes as well.
pub(crate) const OF_CLIENTS: &str = "staging/src/k8s.io/client-go/features/known_features.go";

/// Constants whose gates have another name than they.
const OTHERWISE_NAMED: [(&str, &str); 2] = [
    ("CPUCFSQuotaPeriod", "CustomCPUCFSQuotaPeriod"),
    ("RuntimeClassInImageCriAPI", "RuntimeClassInImageCriApi"),
];

/// Not in the list: two that switch many, and one that upstream had once and kubarium has.
const BESIDE_THE_LIST: [&str; 3] = ["AllAlpha", "AllBeta", "Initializers"];

#[derive(Deserialize)]
struct Gate {
    name: String,
    #[serde(rename = "versionedSpecs")]
    specs: Vec<Spec>,
}

#[derive(Deserialize)]
struct Spec {
    default: bool,
    #[serde(rename = "lockToDefault")]
    is_locked: bool,
    #[serde(rename = "preRelease")]
    stage: String,
    version: String,
}

/// # Errors
/// No list, or one that cannot be read.
pub(crate) fn make(checkout: &Checkout, before: &str) -> Result<String, Problem> {
    let gates: Vec<Gate> =
        serde_yaml::from_str(&checkout.text(LIST)?).map_err(|error| Problem::bad(LIST, error.to_string()))?;
    let mut lines = beside_the_list(before);
    for gate in gates.iter().chain(&of_clients(&checkout.text(OF_CLIENTS)?)) {
        let last = gate.specs.iter().max_by_key(|spec| number(&spec.version));
        let last = last.ok_or_else(|| Problem::bad(LIST, format!("{} has no versions", gate.name)))?;
        lines.insert(real_name(&gate.name).to_owned(), state(last));
    }
    let head = before.lines().take_while(|line| line.starts_with('#'));
    let rows = lines.iter().map(|(name, state)| format!("{name} {state}"));
    Ok(head.map(str::to_owned).chain(rows).flat_map(|line| [line, "\n".into()]).collect())
}

fn beside_the_list(before: &str) -> BTreeMap<String, String> {
    let rows = before.lines().filter_map(|line| line.split_once(' '));
    let kept = rows.filter(|(name, _)| BESIDE_THE_LIST.contains(name));
    kept.map(|(name, state)| (name.to_owned(), state.to_owned())).collect()
}

/// The list has the names of Go's constants.
fn real_name(constant: &str) -> &str {
    let found = OTHERWISE_NAMED.iter().find(|(name, _)| *name == constant);
    found.map_or(constant, |(_, name)| name)
}

/// The gates of the Go client, from its table: `AtomicFIFO: {` and a line for each version.
fn of_clients(text: &str) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_suffix(": {") {
            gates.push(Gate { name: name.to_owned(), specs: Vec::new() });
        } else if let (Some(gate), Some(spec)) = (gates.last_mut(), spec_of_clients(line)) {
            gate.specs.push(spec);
        }
    }
    gates
}

/// `{Version: version.MustParse("1.36"), Default: true, PreRelease: GA, LockToDefault: true},`
fn spec_of_clients(line: &str) -> Option<Spec> {
    let rest = line.strip_prefix("{Version: version.MustParse(\"")?;
    let version = rest.split('"').next()?.to_owned();
    let has = |field: &str| rest.contains(&format!("{field}: true"));
    let stage = rest.split_once("PreRelease: ")?.1;
    let stage = stage.split(|letter: char| !letter.is_ascii_alphabetic()).next()?.to_owned();
    Some(Spec { default: has("Default"), is_locked: has("LockToDefault"), stage, version })
}

fn state(spec: &Spec) -> String {
    let default = if spec.default { "on" } else { "off" };
    let locked = if spec.is_locked { " locked" } else { "" };
    format!("{default} {}{locked}", spec.stage)
}

/// `1.36` is more than `1.4`.
fn number(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}
