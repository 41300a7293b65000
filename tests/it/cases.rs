//! The table-driven suite: each file of `tests/cases` is a topic, a list of requests with the answers that
//! they must get.
//!
//! What a case may say is documented at [`Step`]. A topic has a cluster of its own and its cases follow each
//! other. `KUBARIUM_CASES=lists` runs that topic alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::script::{self, Runner, Step};
use crate::support::test_cluster::TestCluster;
use crate::support::upstream;

/// A topic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// What it is about, in a sentence.
    topic: String,
    /// Whether controllers, scheduler and a node are at work; else the apiserver is alone.
    #[serde(default)]
    components: bool,
    cases: Vec<Step>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_gets_the_answer_that_its_topic_states() {
    let only = std::env::var("KUBARIUM_CASES").ok();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut topics = JoinSet::new();
    // Clusters of the real one are large.
    let together =
        Arc::new(Semaphore::new(if upstream::asked().is_some() { 2 } else { Semaphore::MAX_PERMITS }));
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if only.as_ref().is_none_or(|only| *only == name) {
            let together = together.clone();
            topics.spawn(async move {
                let _turn = together.acquire().await.unwrap();
                run(&name, &path).await
            });
        }
    }
    let (mut count, mut wrong) = (0, vec![]);
    while let Some(outcome) = topics.join_next().await {
        let (cases, failures) = outcome.unwrap();
        count += cases;
        wrong.extend(failures);
    }
    wrong.sort();
    assert!(count > 0, "no topic of that name");
    assert!(wrong.is_empty(), "{} of {count} cases:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

const ACCOUNT: &str =
    "{do: POST /api/v1/namespaces/default/serviceaccounts, body: {metadata: {name: default}}}";

/// How many cases the topic has, and those that went wrong.
async fn run(name: &str, path: &Path) -> (usize, Vec<String>) {
    let topic: Topic = match script::read(path) {
        Ok(topic) => topic,
        Err(error) => return (1, vec![error]),
    };
    let nodes = topic.components.then_some(1);
    let Some(cluster) = TestCluster::start(nodes, &format!("tests/cases/{name}.yaml")).await else {
        return (0, vec![]);
    };
    let mut runner = Runner::new(cluster.service(), &[]);
    if !topic.components {
        // Pods need one, and no controller makes it.
        let account: Step = serde_yaml::from_str(ACCOUNT).unwrap();
        runner.run(&account).await.unwrap();
    }
    let mut wrong = vec![];
    for case in &topic.cases {
        if let Err(why) = runner.run(case).await {
            wrong.push(format!("{name} ({}): {}\n  {}\n  {why}", topic.topic, case.name, case.request));
        }
    }
    cluster.stop().await;
    (topic.cases.len(), wrong)
}
