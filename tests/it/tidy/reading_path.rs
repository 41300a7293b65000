//! The reading path: from the command line to the kubelet, each file names the next.

use std::fs;

use super::source::{Source, root};

#[test]
fn the_reading_path_leads_from_main_to_the_kubelet() {
    let mut at = "main.rs".to_owned();
    let mut seen: Vec<String> = Vec::new();
    loop {
        assert!(!seen.contains(&at), "the path turns in a circle at {at}: {seen:?}");
        let text = fs::read_to_string(root().join("src").join(&at))
            .unwrap_or_else(|error| panic!("{seen:?} leads to {at}: {error}"));
        seen.push(at);
        match text.lines().nth(1).and_then(|line| line.strip_prefix("//! Next: ")) {
            Some(next) => at = below_src(next).to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.last().unwrap(), "kubelet/pod_workers.rs", "the path stops too early: {seen:?}");
    let stations = [
        "apiserver/handler_chain.rs",
        "apiserver/registry/store.rs",
        "etcd/kv.rs",
        "scheduler/schedule_one.rs",
    ];
    for station in stations {
        assert!(seen.iter().any(|file| file == station), "{station} is not on the path: {seen:?}");
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = readme.split("](src/").skip(1).filter_map(|rest| rest.split(')').next());
    let shown: Vec<&str> = links.filter(|link| link.ends_with(".rs")).collect();
    assert_eq!(shown, seen, "the guided walk in the README is not the reading path");
}

/// What a `Next:` line names.
fn below_src(next: &str) -> &str {
    next.trim().strip_prefix("src/").unwrap_or_else(|| panic!("{next}: files are named from src/ on"))
}

#[test]
fn only_stations_of_the_reading_path_name_a_next_file() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let is_led_on =
        |source: &&Source| source.text.lines().nth(1).is_some_and(|it| it.starts_with("//! Next: "));
    for source in Source::all().iter().filter(is_led_on) {
        let link = format!("]({})", source.path);
        assert!(readme.contains(&link), "{} names a next file and is not on the path", source.path);
    }
}
