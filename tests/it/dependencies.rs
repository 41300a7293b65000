//! What the dependencies may be: `deny.toml`, held where cargo-deny is not installed.
//!
//! Licences, duplicates and sources are whole; of advisories only those are known that
//! `tests/fixtures/advisories.tsv` lists, since their database is on the network. `make deny` asks it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// A dependency.
#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

/// What `deny.toml` says: names with the reasons for them.
#[derive(Clone, Default)]
struct Deny {
    licenses: Vec<String>,
    /// A licence of one crate, as `imbl MPL-2.0`.
    exceptions: BTreeMap<String, String>,
    /// As `syn@2.0.119`.
    duplicates: BTreeMap<String, String>,
    advisories: BTreeMap<String, String>,
}

/// An advisory: what it is called, which crate it is about, and the first version that is good.
type Advisory<'a> = (&'a str, &'a str, &'a str);

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[test]
fn dependencies_are_what_they_may_be() {
    let (deny, packages, advisories) = (deny(), packages(), read("tests/fixtures/advisories.tsv"));
    assert!(packages.len() > 100 && deny.licenses.len() > 3 && deny.duplicates.len() > 3);
    let problems = problems(&deny, &packages, &listed(&advisories));
    assert!(problems.is_empty(), "see deny.toml:\n{}", problems.join("\n"));
}

/// Each of these would be let in if the check did not look.
#[test]
fn what_may_not_be_is_found() {
    let (deny, packages, text) = (deny(), packages(), read("tests/fixtures/advisories.tsv"));
    let advisories = listed(&text);
    let planted = |name: &str, version: &str, license: Option<&str>, source: Option<&str>| {
        let (name, version) = (name.to_owned(), version.to_owned());
        let one = Package { name, version, license: license.map(Into::into), source: source.map(Into::into) };
        let with: Vec<Package> = packages.iter().cloned().chain([one]).collect();
        problems(&deny, &with, &advisories)
    };
    let registry = Some(REGISTRY);
    for (found, expected) in [
        (planted("bad", "1.0.0", Some("GPL-3.0"), registry), "bad 1.0.0: licence GPL-3.0 is not allowed"),
        (planted("bad", "1.0.0", Some("MIT AND GPL-3.0"), registry), "licence MIT AND GPL-3.0 is not"),
        (planted("bad", "1.0.0", None, registry), "bad 1.0.0: no licence"),
        (planted("serde_json", "0.9.9", Some("MIT"), registry), "serde_json: in several versions: 0.9.9, 1."),
        (planted("h2", "0.3.9", Some("MIT"), registry), "h2 0.3.9: RUSTSEC-2024-0332, good from 0.4.4 on"),
        (planted("bad", "1.0.0", Some("MIT"), Some("git+https://x")), "bad 1.0.0: from git+https://x"),
    ] {
        assert!(found.iter().any(|problem| problem.contains(expected)), "{expected}: {found:?}");
    }
    let rsa = Deny { advisories: BTreeMap::new(), ..deny.clone() };
    let found = problems(&rsa, &packages, &advisories);
    assert!(found.iter().any(|problem| problem.contains("RUSTSEC-2023-0071")), "{found:?}");
    let mut stale = deny;
    stale.duplicates.insert("gone@1.0.0".into(), String::new());
    stale.advisories.insert("RUSTSEC-1999-0001".into(), "because".into());
    let found = problems(&stale, &packages, &advisories);
    for expected in
        ["gone@1.0.0: not needed any more", "gone@1.0.0: no reason", "RUSTSEC-1999-0001: not needed"]
    {
        assert!(found.iter().any(|problem| problem.contains(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn licence_expressions_are_understood() {
    let deny = Deny { licenses: vec!["MIT".into(), "ISC".into()], ..Deny::default() };
    for (text, expected) in [
        ("MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("(GPL-3.0 OR MIT) AND BSD", false),
        ("MIT WITH exception", false),
        ("MIT+", true),
    ] {
        assert_eq!(is_allowed(&deny, "any", text), expected, "{text}");
    }
}

fn problems(deny: &Deny, packages: &[Package], advisories: &[Advisory]) -> Vec<String> {
    let mut problems = vec![];
    for package in packages {
        let shown = format!("{} {}", package.name, package.version);
        match package.license.as_deref() {
            None => problems.push(format!("{shown}: no licence")),
            Some(text) if !is_allowed(deny, &package.name, text) => {
                problems.push(format!("{shown}: licence {text} is not allowed"));
            }
            _ => {}
        }
        if let Some(source) = package.source.as_deref().filter(|source| *source != REGISTRY) {
            problems.push(format!("{shown}: from {source}"));
        }
    }
    problems.extend(duplicates(deny, packages));
    let open = open_advisories(packages, advisories);
    problems.extend(
        open.iter().filter(|(id, _)| !deny.advisories.contains_key(id)).map(|(_, text)| text.clone()),
    );
    problems.extend(stale(deny, packages, &open));
    problems
}

/// All versions but those that are let be; one that is left may stay.
fn duplicates(deny: &Deny, packages: &[Package]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let is_let_be = deny.duplicates.contains_key(&format!("{}@{}", package.name, package.version));
        if !is_let_be {
            versions.entry(&package.name).or_default().push(&package.version);
        }
    }
    versions.retain(|_, versions| versions.len() > 1);
    let text = |(name, mut versions): (&str, Vec<&str>)| {
        versions.sort_unstable();
        format!("{name}: in several versions: {}", versions.join(", "))
    };
    versions.into_iter().map(text).collect()
}

/// Those that a package of ours is bad by.
fn open_advisories(packages: &[Package], advisories: &[Advisory]) -> Vec<(String, String)> {
    let mut open = vec![];
    for (id, name, good) in advisories {
        for package in packages.iter().filter(|package| package.name == *name) {
            if *good == "-" || numbers(&package.version) < numbers(good) {
                let text = format!("{name} {}: {id}, good from {good} on", package.version);
                open.push(((*id).to_owned(), text));
            }
        }
    }
    open
}

/// Exceptions that are not needed, or say nothing.
fn stale(deny: &Deny, packages: &[Package], open: &[(String, String)]) -> Vec<String> {
    let is_there =
        |one: &str| packages.iter().any(|package| one == format!("{}@{}", package.name, package.version));
    let has_crate = |one: &str| packages.iter().any(|package| one.split(' ').next() == Some(&package.name));
    let unneeded = |needed: bool, name: &String| (!needed).then(|| format!("{name}: not needed any more"));
    let mut problems: Vec<String> = vec![];
    problems.extend(deny.duplicates.keys().filter_map(|name| unneeded(is_there(name), name)));
    problems.extend(deny.exceptions.keys().filter_map(|name| unneeded(has_crate(name), name)));
    let is_open = |id: &str| open.iter().any(|(known, _)| known == id);
    problems.extend(deny.advisories.keys().filter_map(|id| unneeded(is_open(id), id)));
    let all = deny.duplicates.iter().chain(&deny.exceptions).chain(&deny.advisories);
    problems.extend(all.filter(|(_, why)| why.is_empty()).map(|(name, _)| format!("{name}: no reason")));
    problems
}

fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

/// Whether an SPDX expression can be met: AND binds closer than OR, which old manifests write as a slash.
fn is_allowed(deny: &Deny, name: &str, expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let (met, rest) = any_of(deny, name, &words);
    met && rest.is_empty()
}

fn any_of<'a>(deny: &Deny, name: &str, words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = all_of(deny, name, words);
    while rest.first() == Some(&"OR") {
        let (other, after) = all_of(deny, name, &rest[1..]);
        (met, rest) = (met || other, after);
    }
    (met, rest)
}

fn all_of<'a>(deny: &Deny, name: &str, words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = one_of(deny, name, words);
    while rest.first() == Some(&"AND") {
        let (other, after) = one_of(deny, name, &rest[1..]);
        (met, rest) = (met && other, after);
    }
    (met, rest)
}

fn one_of<'a>(deny: &Deny, name: &str, words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    match words {
        ["(", rest @ ..] => {
            let (met, rest) = any_of(deny, name, rest);
            (met && rest.first() == Some(&")"), rest.get(1..).unwrap_or_default())
        }
        [licence, "WITH", exception, rest @ ..] => {
            (deny.licenses.contains(&format!("{licence} WITH {exception}")), rest)
        }
        [licence, rest @ ..] => {
            let licence = licence.trim_end_matches('+');
            let is_exception = deny.exceptions.contains_key(&format!("{name} {licence}"));
            (is_exception || deny.licenses.iter().any(|allowed| allowed == licence), rest)
        }
        [] => (false, words),
    }
}

fn listed(text: &str) -> Vec<Advisory<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns = |line| -> Vec<&str> { str::split(line, '\t').collect() };
    lines.map(|line| <[&str; 3]>::try_from(columns(line)).expect("three columns").into()).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// `deny.toml`, as far as this file asks for it: one entry a line.
fn deny() -> Deny {
    let text = read("deny.toml");
    let text = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let list = |name: &str| -> Vec<String> {
        let pattern = format!(r"(?ms)^{name} = \[\n(.*?)^\]");
        let found = Regex::new(&pattern).unwrap().captures(&text).map(|found| found[1].to_owned());
        found.unwrap_or_default().lines().map(|line| line.trim().to_owned()).collect()
    };
    let value = |line: &str, key: &str| -> String {
        let pattern = format!(r#"\b{key} = \[?"([^"]*)""#);
        Regex::new(&pattern).unwrap().captures(line).map(|found| found[1].to_owned()).unwrap_or_default()
    };
    let reasons = |name: &str, key: &dyn Fn(&str) -> String| -> BTreeMap<String, String> {
        list(name).iter().map(|line| (key(line), value(line, "reason"))).collect()
    };
    Deny {
        licenses: list("allow").iter().map(|line| line.trim_matches([',', '"']).to_owned()).collect(),
        exceptions: reasons("exceptions", &|line| {
            format!("{} {}", value(line, "crate"), value(line, "allow"))
        }),
        duplicates: reasons("skip", &|line| value(line, "crate")),
        advisories: reasons("ignore", &|line| value(line, "id")),
    }
}

/// What is compiled, of all features.
fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let arguments =
        ["metadata", "--format-version=1", "--all-features", "--locked", "--filter-platform", TARGET];
    let output =
        Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}
