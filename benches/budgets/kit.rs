//! What the test kit costs: to settle, to let a month pass, to run a command, and to have many clusters.

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::future::join_all;
use kubarium::kinds::{CRON_JOBS, JOBS};
use kubarium::{Clock, Cluster, Components, Config, Entropy, ListOptions};
use serde_json::json;

use crate::server::{median, milliseconds, resident_mib_of};
use crate::table::Row;

/// The argument that makes this program measure the kit in itself.
pub(crate) const IN_PROCESS: &str = "--in-process-kit";
/// The one that makes it start many clusters.
pub(crate) const MANY: &str = "--in-process-clusters";
const ROUNDS: usize = 101;
const CLUSTERS: usize = 1_000;
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// All of it.
pub(crate) fn measure() -> Vec<Row> {
    let [settle, month] = figures(IN_PROCESS)[..] else { panic!("two figures") };
    let [started, resident] = figures(MANY)[..] else { panic!("two figures") };
    vec![
        Row::new("settle of an idle cluster", settle, "ms").budget(1.0),
        Row::new("a month of an hourly CronJob, stepped", month, "s").budget(0.5),
        Row::new("kubarium run -- true", run_true(), "ms").budget(60.0),
        Row::new("1,000 apiservers in one process, to start", started, "s").budget(10.0),
        Row::new("the same, resident memory", resident, "MiB").budget(2048.0),
    ]
}

fn figures(how: &str) -> Vec<f64> {
    let output = Command::new(std::env::current_exe().unwrap()).arg(how).output().unwrap();
    assert!(output.status.success(), "{how} {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().map(|figure| figure.parse().unwrap()).collect()
}

/// From the start of the program to its end.
fn run_true() -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut times: Vec<f64> = (0..11)
        .map(|_| {
            let start = Instant::now();
            let mut command = Command::new(env!("CARGO_BIN_EXE_kubarium"));
            command.env("KUBARIUM_STATE_DIR", folder.path()).env("HOME", folder.path());
            let output = command.args(["run", "--", "true"]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            milliseconds(start.elapsed())
        })
        .collect();
    median(&mut times)
}

/// Prints the median of a settle, and how long a month takes on one thread.
pub(crate) fn in_process() {
    let settle = runtime(false).block_on(settle());
    let month = runtime(true).block_on(month());
    writeln!(std::io::stdout().lock(), "{settle} {month}").unwrap();
}

fn runtime(on_one_thread: bool) -> tokio::runtime::Runtime {
    let mut builder = match on_one_thread {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build().unwrap()
}

async fn settle() -> f64 {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    cluster.settled().await.unwrap();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        cluster.settled().await.unwrap();
        times.push(milliseconds(start.elapsed()));
    }
    cluster.stop().await;
    median(&mut times)
}

async fn month() -> f64 {
    let clock = Clock::stepped("2030-01-01T00:00:30Z".parse().unwrap());
    let cluster = Cluster::start(Config::new().clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox",
        "command": ["sh", "-c", "sleep 20; echo done"]}]}});
    let spec = json!({"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": pod}}});
    let report = json!({"metadata": {"name": "report"}, "spec": spec});
    cluster.client().create(&CRON_JOBS, "default", report).await.unwrap();
    let start = Instant::now();
    cluster.pass(MONTH).await.unwrap();
    let took = start.elapsed().as_secs_f64();
    let jobs = cluster.client().list(&JOBS, "default", &ListOptions::default()).await.unwrap();
    assert!(!jobs.items.is_empty());
    cluster.stop().await;
    took
}

/// Prints how long it takes until all are ready, and what they take.
pub(crate) fn many() {
    runtime(false).block_on(async {
        let start = Instant::now();
        let config = || Config::new().nodes(0).components(Components::NONE);
        let mut clusters = Vec::new();
        for _ in 0..CLUSTERS / 50 {
            let started = join_all((0..50).map(|_| Cluster::start(config()))).await;
            clusters.extend(started.into_iter().map(Result::unwrap));
        }
        let (took, resident) = (start.elapsed().as_secs_f64(), resident_mib_of(std::process::id()));
        writeln!(std::io::stdout().lock(), "{took} {resident}").unwrap();
        join_all(clusters.into_iter().map(Cluster::stop)).await;
    });
}
