//! Everything at once on a checkout with one group, `toys`, and on trees that lack it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::tables::all;
use crate::{definitions, run, tree};

const BALL: &str = "io.k8s.api.toys.v1.BallSpec";

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkout")
}

/// A tree of kubarium that has nothing but heads, and rows about a package that no checkout has.
fn empty_tree() -> TempDir {
    let tree = TempDir::new().unwrap();
    for table in all() {
        let path = tree.path().join(table.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "# What it is.\n").unwrap();
    }
    fs::write(tree.path().join("manifests/schemas/types.tsv"), "").unwrap();
    fs::write(tree.path().join("manifests/schemas/legacy.json"), "[]").unwrap();
    tree
}

/// What was said, and whether nothing differed.
fn told(upstream: &Path, tree: &Path, is_check: bool) -> (String, bool) {
    let mut out = Vec::new();
    let is_same = run(upstream, tree, is_check, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), is_same)
}

fn table(tree: &Path, path: &str) -> String {
    fs::read_to_string(tree.join(path)).unwrap()
}

/// The rows of a table, each fact of [`BALL`] without its first cell.
fn facts(tree: &Path, name: &str) -> Vec<String> {
    let text = table(tree, &format!("manifests/schemas/{name}.tsv"));
    let rows = text.lines().filter_map(|line| line.strip_prefix(BALL));
    rows.map(|row| row.trim_start().to_owned()).collect()
}

#[test]
fn every_table_is_made_and_then_as_it_was() {
    let tree = empty_tree();
    let (first, is_same) = told(&checkout(), tree.path(), false);
    assert!(!is_same && first.contains("manifests/schemas/enums.tsv: 1 lines came, 0 went"), "{first}");
    assert!(!first.contains("left alone"), "{first}");
    let (second, is_same) = told(&checkout(), tree.path(), true);
    let as_it_was = second.lines().filter(|line| line.ends_with(": as it was")).count();
    assert!(is_same && as_it_was == all().len(), "{second}");
}

#[test]
fn what_is_published_and_what_go_says_are_found() {
    let tree = empty_tree();
    told(&checkout(), tree.path(), false);
    let facts = |name: &str| facts(tree.path(), name);
    assert_eq!(facts("defaults"), ["bounces\tdefault\t3", "texture\tdefault\t\"Large\""]);
    assert_eq!(facts("enums"), ["colours\tenum of items\t[\"Blue\",\"Grey\",\"Red\"]"]);
    assert_eq!(
        facts("go-types"),
        [
            "colours\tx-kubarium-go-type\t\"[]v1.Colour\"",
            "madeAt\tx-kubarium-go-type\t\"v1.Time\"",
            "owners\tx-kubarium-go-type\t\"v1.Owners\"",
            "size\tx-kubarium-go-type\t\"v1.Size\"",
        ]
    );
    assert_eq!(
        facts("presence"),
        [
            "bounces\tx-kubarium-presence\t\"kept\"",
            "filling\tx-kubarium-presence\t\"null\"",
            "madeAt\tx-kubarium-presence\t\"always\"",
        ]
    );
    assert_eq!(
        facts("protobuf"),
        ["bounces\t1?", "colours\t2", "filling\t3?", "madeAt\t4", "owners\t5.1", "size\t6", "texture\t7.1"]
    );
    assert_eq!(facts("patch").len(), 2);
    assert_eq!(facts("list-types").len(), 3);
}

#[test]
fn definitions_leave_to_the_tables_what_is_theirs() {
    let tree = empty_tree();
    told(&checkout(), tree.path(), false);
    let text = table(tree.path(), "manifests/schemas/definitions.json");
    assert!(
        text.contains("\n    \"colours\": {\"items\":{\"type\":\"string\"},\"type\":\"array\"},\n"),
        "{text}"
    );
    assert!(text.contains("\"required\": [\"metadata\",\"spec\"]"), "{text}");
    // What belongs to every group is told of those that are served.
    assert_eq!(text.matches("x-kubernetes-group-version-kind").count(), 1, "{text}");
    let merges = table(tree.path(), "src/apimachinery/managed_fields/tests/published.tsv");
    assert!(merges.contains(&format!("{BALL}\towners\tmap\tname\t\tmerge\tname\n")), "{merges}");
}

#[test]
fn gates_are_as_in_their_last_version_and_ours_stay() {
    let tree = empty_tree();
    let path = "src/apimachinery/feature_gates.txt";
    fs::write(tree.path().join(path), "# Gates.\nAllAlpha off Alpha\nGone on GA\nInitializers off Alpha\n")
        .unwrap();
    told(&checkout(), tree.path(), false);
    let wanted = "# Gates.\nAllAlpha off Alpha\nBouncing on GA locked\nCustomCPUCFSQuotaPeriod on GA\n\
                  Flying on GA locked\nInitializers off Alpha\nSinking off Deprecated\n";
    assert_eq!(table(tree.path(), path), wanted);
}

#[test]
fn discovery_is_a_row_for_each_resource() {
    let tree = empty_tree();
    told(&checkout(), tree.path(), false);
    let wanted = "# What it is.\n\
                  toys/v1\tballs\tBall\tns\tball\tba\tall\tall\tabc=\n\
                  toys/v1\tballs/scale\tautoscaling/v1/Scale\tns\t\t\t\tget,patch,update\t-\n";
    assert_eq!(table(tree.path(), "tests/fixtures/discovery.tsv"), wanted);
}

#[test]
fn a_check_writes_nothing() {
    let tree = empty_tree();
    let (_, is_same) = told(&checkout(), tree.path(), true);
    assert!(!is_same);
    assert_eq!(table(tree.path(), "manifests/schemas/enums.tsv"), "# What it is.\n");
}

#[test]
fn what_a_part_of_a_checkout_lacks_is_named_and_its_tables_are_left_alone() {
    let tree = empty_tree();
    told(&checkout(), tree.path(), false);
    let before = table(tree.path(), "manifests/schemas/enums.tsv");
    let nothing = TempDir::new().unwrap();
    let (told, is_same) = told(nothing.path(), tree.path(), false);
    assert!(is_same);
    assert_eq!(
        told.lines().filter(|line| line.contains("left alone: the checkout has no")).count(),
        all().len()
    );
    for input in
        ["api/openapi-spec/swagger.json", "staging/src", "versioned_feature_list.yaml", "api/discovery"]
    {
        assert!(told.contains(input), "{told}");
    }
    assert_eq!(table(tree.path(), "manifests/schemas/enums.tsv"), before);
}

#[test]
fn rows_about_packages_that_are_not_there_stay() {
    let tree = empty_tree();
    let row = "io.k8s.api.games.v1.Chess\tmoves\tenum\t[\"a\"]\n";
    fs::write(tree.path().join("manifests/schemas/enums.tsv"), format!("# What it is.\n{row}")).unwrap();
    told(&checkout(), tree.path(), false);
    let text = table(tree.path(), "manifests/schemas/enums.tsv");
    assert!(text.contains(row) && text.lines().count() == 3, "{text}");
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let tree = empty_tree();
    let problem = run(&tree.path().join("nowhere"), tree.path(), false, &mut Vec::new()).unwrap_err();
    assert!(problem.to_string().ends_with("nowhere: is no folder"), "{problem}");
}

/// The tree's own tables. Where `KUBARIUM_CHECKOUT` names a checkout, they are held against it as well.
#[test]
fn the_tables_of_the_tree_stand_as_they_are_made() {
    let own = table(&tree(), definitions::PATH);
    let read: definitions::Definitions = serde_json::from_str(&own).unwrap();
    assert!(read.len() > 700 && definitions::render(&read) == own, "{} was edited", definitions::PATH);
    for made in all().iter().filter(|made| made.path.ends_with(".tsv")) {
        let own = table(&tree(), made.path);
        let rows: Vec<Vec<&str>> = rows(&own).map(|row| row.split('\t').collect()).collect();
        let columns = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == columns), "{}: rows differ in their columns", made.path);
        assert!(rows.is_sorted() || made.path.starts_with("tests/"), "{} is not in order", made.path);
    }
    if let Some(checkout) = std::env::var_os("KUBARIUM_CHECKOUT") {
        let (told, is_same) = told(Path::new(&checkout), &tree(), true);
        assert!(is_same, "{told}");
    }
}

fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.starts_with('#'))
}
