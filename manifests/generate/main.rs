//! Writes every table of facts from a checkout of Kubernetes, and says what differs: `make schemas UPSTREAM=FOLDER`.
//!
//! In come a folder that holds what a checkout of `kubernetes/kubernetes` holds, or a part of it, and the tree
//! of kubarium. Out go the tables of [`tables::all`]. A table whose input the checkout does not have is left as it
//! is, and so are the rows about packages that it does not have.
//!
//! With `--check` nothing is written, and the program fails where something differs.

mod checkout;
mod definitions;
mod discovery;
mod feature_gates;
mod go;
mod go_facts;
mod merges;
mod protobuf;
mod table;
mod tables;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkout::{Checkout, Problem};
use table::Difference;

const USAGE: &str =
    "kubarium-schemas CHECKOUT [--check]: CHECKOUT is a folder with api/ and staging/ of Kubernetes";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, folders): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|one| one.starts_with('-'));
    let [folder] = folders.as_slice() else {
        return fail(USAGE);
    };
    let is_check = flags.iter().any(|flag| *flag == "--check");
    if flags.len() > usize::from(is_check) {
        return fail(USAGE);
    }
    match run(Path::new(folder), &tree(), is_check, &mut io::stdout()) {
        Ok(is_same) if is_same || !is_check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => fail(&problem.to_string()),
    }
}

fn fail(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// The tree of kubarium that this program was built in.
fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Makes each table anew; true when none differs from what stands in the tree.
fn run(upstream: &Path, tree: &Path, is_check: bool, out: &mut dyn Write) -> Result<bool, Problem> {
    let checkout = Checkout::open(upstream, tree)?;
    let mut is_same = true;
    for table in tables::all() {
        let path = tree.join(table.path);
        let before = checkout::read_if_there(&path)?.unwrap_or_default();
        let told = match (table.make)(&checkout, &before) {
            Ok(after) => {
                let difference = Difference::between(&before, &after);
                is_same &= difference.is_none();
                if !is_check && !difference.is_none() {
                    checkout::write(&path, &after)?;
                }
                difference.to_string()
            }
            Err(Problem::Missing(what)) => format!("left alone: the checkout has no {what}\n"),
            Err(problem) => return Err(problem),
        };
        write!(out, "{}: {told}", table.path).map_err(|error| Problem::io(&path, &error))?;
    }
    Ok(is_same)
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
