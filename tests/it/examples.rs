//! The examples do what they say: each is run as it stands, and its assertions are the test.

#[path = "../../examples/chaos_by_faults.rs"]
mod chaos_by_faults;
#[path = "../../examples/chaos_by_stages.rs"]
mod chaos_by_stages;
#[path = "../../examples/cluster_in_a_test.rs"]
mod cluster_in_a_test;
#[path = "../../examples/forked_fixture.rs"]
mod forked_fixture;
#[path = "../../examples/operator.rs"]
mod operator;
#[path = "../../examples/own_parts.rs"]
mod own_parts;
#[path = "../../examples/stepped_time.rs"]
mod stepped_time;

#[test]
fn every_example_is_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(example) = name.strip_suffix(".rs") {
            assert!(include_str!("examples.rs").contains(&format!("{example}::main()")), "{name} is not run");
        }
    }
}

#[test]
fn a_cluster_in_a_test() {
    cluster_in_a_test::main().unwrap();
}

#[test]
fn a_fixture_that_is_forked() {
    forked_fixture::main().unwrap();
}

#[test]
fn an_operator_with_kube_rs() {
    operator::main().unwrap();
}

#[test]
fn parts_of_ones_own() {
    own_parts::main().unwrap();
}

#[test]
fn time_that_the_test_owns() {
    stepped_time::main().unwrap();
}

#[test]
fn chaos_by_stages() {
    chaos_by_stages::main().unwrap();
}

#[test]
fn chaos_by_faults() {
    chaos_by_faults::main().unwrap();
}
