//! From nothing to ready: the process, the library, and the memory that this takes.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kubarium::{Cluster, Config};

use crate::server::{Server, median, milliseconds, runtime};
use crate::support::command;
use crate::support::wire::Target;
use crate::table::Row;

/// The argument that makes this program measure `Cluster::start` in itself.
pub(crate) const IN_PROCESS: &str = "--in-process-start";
const ROUNDS: usize = 15;

/// All of it.
pub(crate) fn measure() -> Vec<Row> {
    let mut processes: Vec<f64> = (0..ROUNDS).map(|_| milliseconds(process_start())).collect();
    let (mut first, mut later): (Vec<f64>, Vec<f64>) = (0..ROUNDS).map(|_| in_fresh_process()).unzip();
    let mut resident: Vec<f64> = (0..ROUNDS).map(|_| Server::start(3).resident_mib()).collect();
    let server_only = "2300";
    vec![
        Row::new("process start to /readyz over TLS (3 nodes)", median(&mut processes), "ms")
            .budget(50.0)
            .real(server_only),
        Row::new("Cluster::start, the first of a process", median(&mut first), "ms").budget(10.0),
        Row::new("Cluster::start, later ones", median(&mut later), "ms"),
        Row::new("resident memory, ready, 3 nodes", median(&mut resident), "MiB").budget(25.0).real("490"),
    ]
}

/// Until a client that trusts the cluster's own authority has its answer.
fn process_start() -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let start = Instant::now();
    let child = command(folder.path())
        .args(["up", "--name", "bench", "--nodes", "3", "--kubeconfig"])
        .arg(folder.path().join("kubeconfig"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _stop = StopOnDrop(child);
    let record = folder.path().join("state").join("bench.json");
    while !fs::exists(&record).unwrap() {
        assert!(start.elapsed() < Duration::from_secs(60), "it is not getting ready");
        std::thread::sleep(Duration::from_micros(200));
    }
    let target = Target::of_kubeconfig(&folder.path().join("kubeconfig"));
    let answer = runtime.block_on(async { target.http1().await?.get("/readyz").await }).unwrap();
    let elapsed = start.elapsed();
    assert_eq!((answer.code, &answer.body[..]), (200, &b"ok"[..]));
    elapsed
}

fn in_fresh_process() -> (f64, f64) {
    let output = Command::new(std::env::current_exe().unwrap()).arg(IN_PROCESS).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut figures = text.split_whitespace().map(|figure| figure.parse().unwrap());
    (figures.next().expect("the first"), figures.next().expect("the later"))
}

/// Prints how long the first start took, and the median of later ones.
pub(crate) fn in_process() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut figures: Vec<f64> = (0..11).map(|_| runtime.block_on(one_start())).collect();
    let first = figures.remove(0);
    use std::io::Write;
    let mut out = std::io::stdout();
    writeln!(out, "{first} {}", median(&mut figures)).unwrap();
}

async fn one_start() -> f64 {
    let start = Instant::now();
    let cluster = Cluster::start(Config::default()).await.unwrap();
    let elapsed = milliseconds(start.elapsed());
    cluster.stop().await;
    elapsed
}

struct StopOnDrop(Child);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}
