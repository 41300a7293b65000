//! The documents are true: every path and every command that they name is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

const DOCUMENTS: &[&str] = &[
    "src/ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "README.md",
    "src/SCALE.md",
    "tests/README.md",
    "manifests/README.md",
];

/// Folders and files at the root, by which a path in a text is known to be one of ours.
const ROOTS: &[&str] = &["src", "tests", "manifests", "benches", "examples", ".ci", ".github"];

/// Names in the documents that are others', as of features of crates.
const FOREIGN: &[&str] = &["preserve_order"];

#[test]
fn every_path_that_a_document_names_is_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in DOCUMENTS {
        for path in paths(&read(document)) {
            count += 1;
            if !exists(&path) {
                wrong.push(format!("{document}: there is no {path}"));
            }
        }
    }
    assert!(count > 60, "the documents have lost their paths: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_that_a_document_names_is_there() {
    let makefile = read("Makefile");
    let subcommands = subcommands();
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in DOCUMENTS {
        for command in commands(&read(document)) {
            count += 1;
            let is_there = match command.split_once(' ') {
                Some(("make", target)) => makefile.contains(&format!("\n{target}:")),
                Some((_, subcommand)) => subcommands.contains(subcommand),
                None => false,
            };
            if !is_there {
                wrong.push(format!("{document}: there is no `{command}`"));
            }
        }
    }
    assert!(count > 15, "the documents have lost their commands: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_has_a_row_in_the_plan() {
    let plan = read("src/ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_folder = root().join("src").join(&name).is_dir();
        let wanted = if is_folder { format!("`src/{name}/`") } else { format!("`src/{name}`") };
        let is_told = plan.lines().any(|line| line.starts_with("| `") && line.contains(&wanted));
        assert!(is_told || name.ends_with(".md"), "src/ARCHITECTURE.md has no row for {wanted}");
    }
}

#[test]
fn every_name_of_the_code_that_a_recipe_uses_is_there() {
    let sources = sources() + &read("Makefile");
    let words: BTreeSet<&str> =
        sources.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in ["CONTRIBUTING.md", "src/ARCHITECTURE.md"] {
        for name in names(&read(document)) {
            count += 1;
            if !FOREIGN.contains(&name.as_str()) && !name.split("::").all(|part| words.contains(part)) {
                wrong.push(format!("{document}: nothing is called {name}"));
            }
        }
    }
    assert!(count > 25, "the documents have lost their names: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What stands between backticks and can only be a name of the code: `spawn_workers`, `DEFAULT_PLUGINS`,
/// `ComponentContext`, `Clock::stepped()`. Samples between fences may name what they like.
fn names(text: &str) -> BTreeSet<String> {
    let text: String = text.split("\n```").step_by(2).collect();
    let named = Regex::new(r"`([A-Za-z]\w*(?:::\w+)*)(?:\(\))?`").unwrap();
    let is_a_name = |name: &&str| {
        let has_capital_inside = name.chars().skip(1).any(|letter| letter.is_ascii_uppercase());
        name.contains('_') || name.contains("::") || has_capital_inside
    };
    let found = named.captures_iter(&text).filter_map(|found| found.get(1)).map(|found| found.as_str());
    found.filter(is_a_name).map(str::to_owned).collect()
}

fn sources() -> String {
    let mut sources = String::new();
    for folder in ["src", "tests/it", "benches", "manifests/generate"] {
        read_all(&root().join(folder), &mut sources);
    }
    sources
}

#[test]
fn every_variable_that_a_document_names_is_read_somewhere() {
    let variable = Regex::new(r"\bKUBARIUM_[A-Z_]+\b").unwrap();
    let sources = sources();
    for document in DOCUMENTS {
        let text = read(document);
        for found in variable.find_iter(&text) {
            assert!(sources.contains(found.as_str()), "{document}: nothing reads {}", found.as_str());
        }
    }
}

#[test]
fn paths_and_commands_are_found_in_a_text() {
    let text = "See `src/lib.rs` and [x](tests/it), `src/**` aside; `make test` or `kubarium up -f x`.\n$ make run # x";
    assert_eq!(paths(text).into_iter().collect::<Vec<_>>(), ["src/lib.rs", "tests/it"]);
    assert_eq!(commands(text).into_iter().collect::<Vec<_>>(), ["kubarium up", "make run", "make test"]);
    assert!(!exists("src/nowhere.rs"));
    let text = "`in_the_code`, `Clock::stepped()`, `ApiService`; `golang`, `Clock` and `make test` are none.\n\
                ```rust\n/// `MaxBytes`\n```\n";
    assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["ApiService", "Clock::stepped", "in_the_code"]);
}

/// The paths between backticks and behind links that begin with one of the folders of the root.
fn paths(text: &str) -> BTreeSet<String> {
    let named = Regex::new(r"[`(]((?:[A-Za-z_.-]+/)*[A-Za-z0-9_.*-]+/?)[`)]").unwrap();
    let is_ours = |path: &&str| {
        let first = path.split('/').next().unwrap_or_default();
        path.contains('/') && ROOTS.contains(&first) || is_file_of_the_root(path)
    };
    let found = named.captures_iter(text).filter_map(|found| found.get(1)).map(|found| found.as_str());
    found.filter(is_ours).filter(|path| !path.contains('*')).map(str::to_owned).collect()
}

fn is_file_of_the_root(path: &str) -> bool {
    !path.contains('/')
        && (path.ends_with(".md") || path.ends_with(".toml") || path == "Makefile" || path == "build.rs")
}

/// `make TARGET` and `kubarium SUBCOMMAND` between backticks or behind a prompt.
fn commands(text: &str) -> BTreeSet<String> {
    let named = Regex::new(r"(?m)(?:`|^\$ )((?:make|kubarium) [a-z][a-z-]*)").unwrap();
    named.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// The subcommands of the program, as its help lists them.
fn subcommands() -> BTreeSet<String> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kubarium")).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let listed = listed.take_while(|line| line.starts_with(' ') || line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// A folder of the repository may be named with or without its last slash.
fn exists(path: &str) -> bool {
    root().join(path.trim_end_matches('/')).exists()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read_all(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
