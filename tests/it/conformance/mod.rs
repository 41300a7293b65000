//! What suites written for the real server look at, a row each: `tests/conformance/behaviours.txt` is the list.
//!
//! Most rows are stories in `tests/conformance/*.yaml`: the requests that such a suite sends, in its order, and
//! what it wants of each answer. A file has a cluster of its own, a story a namespace of its own, and the
//! stories of a file run at the same time unless they are `serial`. `KUBARIUM_STORY=watch` runs the stories
//! with that in their name. What needs a loop or a kubectl is a test in this folder, marked `Row:`.

mod cli;
mod commands;
mod discovery;
mod lifecycle;
mod operations;
mod same_story;
mod scale;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kubarium::apimachinery::wire::ApiService;
use kubarium::{Cluster, Config};
use regex::Regex;
use serde::Deserialize;
use serde_yaml::Value as Yaml;
use tokio::task::JoinSet;

use crate::etcd_store::RealEtcd;
use crate::support::script::{self, Runner, Step};
use crate::support::test_cluster::TestCluster;
use crate::support::upstream;

/// Where the objects of a kind are.
struct Places<'a> {
    /// As `resource.k8s.io/v1`.
    version: &'a str,
    resource: &'a str,
    namespaced: bool,
}

impl Places<'_> {
    /// Of all namespaces.
    fn everywhere(&self) -> String {
        format!("/apis/{}/{}", self.version, self.resource)
    }

    /// Of the default namespace, if the kind has any.
    fn collection(&self) -> String {
        match self.namespaced {
            true => format!("/apis/{}/namespaces/default/{}", self.version, self.resource),
            false => self.everywhere(),
        }
    }
}

/// The stories of an area on one cluster.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    /// So many nodes.
    #[serde(default = "two")]
    nodes: u32,
    /// Trees that stories borrow by their anchors.
    #[serde(default, rename = "fixtures")]
    _fixtures: Yaml,
    stories: Vec<Story>,
}

fn two() -> u32 {
    2
}

/// A row. Its namespace is `${ns}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    row: String,
    /// Runs when nothing else does: it looks at or changes what all share.
    #[serde(default)]
    serial: bool,
    /// Its pods ask each other, which nodes alone do not carry.
    #[serde(default)]
    asks_pods: bool,
    steps: Vec<Step>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_ends_well() {
    tell_stories(None).await;
}

/// What is kept in an etcd is the same to whoever asks; each area has its part of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stories_end_well_on_an_etcd_too() {
    let etcd = RealEtcd::start();
    tell_stories(Some(&etcd.url())).await;
}

async fn tell_stories(etcd: Option<&str>) {
    let mut wrong = vec![];
    let mut count = 0;
    for path in story_files() {
        let mut area: Area = script::read(&path).unwrap();
        if let Ok(only) = std::env::var("KUBARIUM_STORY") {
            area.stories.retain(|story| story.row.contains(&only));
        }
        if !area.stories.is_empty() {
            count += area.stories.len();
            wrong.extend(area.run(&path, etcd).await);
        }
    }
    assert!(count > 0, "no story of that name");
    assert!(wrong.is_empty(), "{} of {count} stories:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn every_row_has_a_test() {
    let covered = covered();
    let list = fs::read_to_string(root().join("tests/conformance/behaviours.txt")).unwrap();
    let rows = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let missing: Vec<&str> = rows.filter(|row| !covered.contains(*row)).collect();
    assert!(missing.is_empty(), "no test for these rows:\n{}", missing.join("\n"));
}

/// `tests/conformance/COVERAGE.md` names rows and functions that are there, or says why there is none.
#[test]
fn what_is_said_to_be_covered_is() {
    let covered = covered();
    let table = fs::read_to_string(root().join("tests/conformance/COVERAGE.md")).unwrap();
    let lines = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| test |"));
    let (mut count, mut missing) = (0, vec![]);
    for line in lines.filter(|line| !line.starts_with("| --- ")) {
        count += 1;
        let by = line.trim_end_matches('|').trim().rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = by.split('`').skip(1).step_by(2).collect();
        let is_there = |name: &&str| match name.split_once("::") {
            Some((file, function)) => fs::read_to_string(root().join("tests/it").join(file))
                .is_ok_and(|text| text.contains(&format!("fn {function}("))),
            None => covered.contains(*name),
        };
        let says_why = named.is_empty() && by.starts_with("- ") && by.len() > 10;
        if !says_why && (named.is_empty() || !named.iter().all(is_there)) {
            missing.push(line);
        }
    }
    assert!(count > 400, "only {count} tests");
    assert!(missing.is_empty(), "what these name is not there:\n{}", missing.join("\n"));
}

/// All rows that something looks at.
fn covered() -> BTreeSet<String> {
    let mut covered: BTreeSet<String> = BTreeSet::new();
    for path in story_files() {
        let area: Area = script::read(&path).unwrap();
        covered.extend(area.stories.into_iter().map(|story| story.row));
    }
    covered.extend(operations::rows());
    covered.extend(lifecycle::rows());
    let mark = Regex::new(r"(?m)^\s*//[/!] Row: (.+)$").unwrap();
    for path in rust_files(&root().join("tests/it")) {
        let text = fs::read_to_string(path).unwrap();
        covered.extend(mark.captures_iter(&text).map(|found| found[1].trim().to_owned()));
    }
    covered
}

impl Area {
    async fn run(mut self, file: &Path, etcd: Option<&str>) -> Vec<String> {
        if upstream::asked().is_some() && etcd.is_none() {
            self.stories.retain(Story::can_be_asked_elsewhere);
        }
        let Some(cluster) = self.start(file, etcd).await else { return vec![] };
        // On an etcd a write is seen later than it is answered, and so a story may be told once more.
        let tries = if etcd.is_some() { 2 } else { 1 };
        let (serial, together): (Vec<Story>, Vec<Story>) =
            self.stories.into_iter().partition(|story| story.serial);
        let mut wrong: Vec<String> = ready(&cluster, self.nodes).await.err().into_iter().collect();
        let mut running = JoinSet::new();
        for (number, story) in together.into_iter().enumerate() {
            running.spawn(story.run(cluster.service(), format!("story-{number}"), tries));
        }
        while let Some(outcome) = running.join_next().await {
            wrong.extend(outcome.unwrap().err());
        }
        for (number, story) in serial.into_iter().enumerate() {
            wrong.extend(story.run(cluster.service(), format!("serial-{number}"), tries).await.err());
        }
        cluster.stop().await;
        wrong
    }

    async fn start(&self, file: &Path, etcd: Option<&str>) -> Option<TestCluster> {
        match etcd {
            Some(etcd) => {
                let prefix = format!("/{}", file.file_stem().unwrap().display());
                Some(TestCluster::on_etcd(self.nodes, etcd, &prefix).await)
            }
            None => TestCluster::start(Some(self.nodes), &file.display().to_string()).await,
        }
    }
}

impl Story {
    /// Nodes of ours have no port that another's server could ask for logs, and no network beneath them.
    fn can_be_asked_elsewhere(&self) -> bool {
        let is_log = |step: &Step| step.request.split('?').next().is_some_and(|path| path.ends_with("/log"));
        let has_log = self.steps.iter().any(is_log);
        if has_log {
            eprintln!("not asked: {}: nothing serves the logs of simulated nodes", self.row);
        }
        if self.asks_pods {
            eprintln!("not asked: {}: nothing carries what simulated pods ask each other", self.row);
        }
        !has_log && !self.asks_pods
    }

    /// In a namespace of its own, and in others as often as it may be told.
    async fn run(self, service: ApiService, namespace: String, tries: usize) -> Result<(), String> {
        let mut outcome = Ok(());
        for namespace in (0..tries).map(|one| format!("{namespace}-{one}")) {
            outcome = self.play(&mut Runner::new(service.clone(), &[("ns", &namespace)])).await;
            match &outcome {
                Ok(()) => break,
                Err(why) => eprintln!("in {namespace}: {why}"),
            }
        }
        outcome
    }

    async fn play(&self, runner: &mut Runner) -> Result<(), String> {
        for step in NAMESPACE_IS_READY.iter().copied().map(written) {
            self.step(runner, &step).await?;
        }
        for step in &self.steps {
            self.step(runner, step).await?;
        }
        Ok(())
    }

    async fn step(&self, runner: &mut Runner, step: &Step) -> Result<(), String> {
        let Err(why) = runner.run(step).await else { return Ok(()) };
        let logs = runner.logs_of_failed_containers("${ns}").await;
        Err(format!("{}: {}\n  {}\n  {why}\n{logs}", self.row, step.name, step.request))
    }
}

/// A suite begins when nodes take pods.
async fn ready(cluster: &TestCluster, nodes: u32) -> Result<(), String> {
    for node in 1..=nodes {
        let mut runner = Runner::new(cluster.service(), &[("node", &format!("node-{node}"))]);
        runner.run(&written(NODE_IS_READY)).await?;
    }
    Ok(())
}

fn written(step: &str) -> Step {
    serde_yaml::from_str(step).unwrap()
}

const NODE_IS_READY: &str = "
do: GET /api/v1/nodes/${node}
eventually: true
answer: {spec: {taints: null}, status: {conditions: {$has: [{type: Ready, status: 'True'}]}}}
";

/// What is waited for before a suite's test begins.
const NAMESPACE_IS_READY: [&str; 3] = [
    "{do: POST /api/v1/namespaces, body: {metadata: {name: '${ns}'}}}",
    "{do: 'GET /api/v1/namespaces/${ns}/serviceaccounts/default', eventually: true}",
    "{do: 'GET /api/v1/namespaces/${ns}/configmaps/kube-root-ca.crt', eventually: true}",
];

fn story_files() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("tests/conformance/stories")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] }).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
