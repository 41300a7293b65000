//! What a fork costs: of a cluster with 10,000 objects, in a process of its own.

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use futures::future::join_all;
use kubarium::kinds::{CONFIG_MAPS, SERVICE_ACCOUNTS};
use kubarium::{Cluster, Config};
use serde_json::json;

use crate::server::{median, milliseconds, resident_mib_of};
use crate::table::Row;

/// The argument that makes this program measure forks in itself.
pub(crate) const IN_PROCESS: &str = "--in-process-forks";
const OBJECTS: usize = 10_000;
const ROUNDS: usize = 11;

/// All of it.
pub(crate) fn measure() -> Vec<Row> {
    let output = Command::new(std::env::current_exe().unwrap()).arg(IN_PROCESS).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    let [answer, at_work, memory] = figures[..] else { panic!("{text}") };
    vec![
        Row::new("fork of a cluster with 10,000 ConfigMaps: first answer", answer, "ms").budget(5.0),
        Row::new("the same, components at work", at_work, "ms").budget(50.0),
        Row::new("the same, memory until it writes", memory, "MiB").budget(2.0),
    ]
}

/// Prints the medians of how long the first answer took, and until a controller had done something, and what a
/// fork that only stands took of memory.
pub(crate) fn in_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let [answer, at_work, memory] = runtime.block_on(async {
        let parent = Cluster::start(Config::new()).await.unwrap();
        fill(&parent).await;
        let memory = standing(&parent).await;
        let (mut answers, mut works) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (answer, at_work) = one_fork(&parent).await;
            answers.push(answer);
            works.push(at_work);
        }
        [median(&mut answers), median(&mut works), memory]
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer} {at_work} {memory}").unwrap();
}

async fn fill(parent: &Cluster) {
    let client = parent.client();
    for batch in 0..OBJECTS / 100 {
        let create = |number: usize| {
            let map = json!({"metadata": {"name": format!("map-{batch}-{number}")}, "data": {"x": "x".repeat(500)}});
            client.create(&CONFIG_MAPS, "default", map)
        };
        join_all((0..100).map(create)).await.into_iter().for_each(|made| drop(made.unwrap()));
    }
}

/// Until the controllers have made what every namespace has.
async fn one_fork(parent: &Cluster) -> (f64, f64) {
    let start = Instant::now();
    let fork = parent.fork().await.unwrap();
    fork.client().get(&CONFIG_MAPS, "default", "map-0-0").await.unwrap();
    let answer = milliseconds(start.elapsed());
    let namespace = json!({"metadata": {"name": "new"}});
    fork.client().create(&kubarium::kinds::NAMESPACES, "", namespace).await.unwrap();
    while fork.client().get(&SERVICE_ACCOUNTS, "new", "default").await.is_err() {
        tokio::task::yield_now().await;
    }
    let at_work = milliseconds(start.elapsed());
    fork.stop().await;
    (answer, at_work)
}

/// The mean of several, since memory comes in pieces.
async fn standing(parent: &Cluster) -> f64 {
    let before = resident_mib_of(std::process::id());
    let mut forks = Vec::new();
    for _ in 0..ROUNDS {
        forks.push(parent.fork().await.unwrap());
    }
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    (resident_mib_of(std::process::id()) - before) / ROUNDS as f64
}
