//! The measured process, and what the kernel says of it.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::Up;
use crate::support::wire::{Target, Wire};

/// A kubarium of its own.
pub(crate) struct Server {
    up: Up,
    /// What is measured of it.
    pub process: Process,
}

/// A process that serves the API, whoever started it.
pub(crate) struct Process {
    /// As the kernel knows it.
    pub pid: u32,
    /// How to reach it.
    pub target: Target,
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    /// Starts one, and waits until its nodes are ready and it has nothing left to do.
    pub(crate) fn start(nodes: usize) -> Server {
        Server::start_with(nodes, &[])
    }

    /// The same with more arguments to `up`.
    pub(crate) fn start_with(nodes: usize, more: &[&str]) -> Server {
        Server::start_alone(&[&["--nodes", &nodes.to_string()], more].concat())
    }

    /// Starts one with these arguments to `up` alone.
    pub(crate) fn start_alone(arguments: &[&str]) -> Server {
        let up = Up::start_with(arguments);
        let target = Target::of_kubeconfig(&up.folder().join("kubeconfig"));
        let server = Server { process: Process { pid: up.pid(), target }, up };
        server.wait_until_quiet();
        server
    }

    /// Of an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.up.folder().join("kubeconfig")
    }
}

impl Process {
    /// Processor time, user and system, of all its threads.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        // The name, in parentheses, may hold blanks; what follows it does not.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        // The kernel counts in hundredths here, whatever its own tick.
        Duration::from_millis(ticks * 10)
    }

    /// Resident memory.
    pub(crate) fn resident_mib(&self) -> f64 {
        resident_mib_of(self.pid)
    }

    /// Waits until it has used next to no processor time for a while, so that whatever follows from what was
    /// asked of it is done. Returns the processor time until then.
    pub(crate) fn wait_until_quiet(&self) -> Duration {
        let start = Instant::now();
        let mut before = self.cpu();
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = self.cpu();
            if now - before <= Duration::from_millis(10) || start.elapsed() > Duration::from_secs(120) {
                return before;
            }
            before = now;
        }
    }
}

/// A ConfigMap of about 1 KB.
pub(crate) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "data": {"text": "x".repeat(900)},
    })
}

/// Makes a namespace for the measured objects.
pub(crate) async fn namespace(wire: &mut Wire, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let answer = wire.send(Method::POST, "/api/v1/namespaces", &namespace).await.unwrap();
    assert_eq!(answer.code, 201, "{}", answer.json());
}

/// The client's side. Single-threaded, so that it takes at most one core from the server.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Resident memory of a process.
pub(crate) fn resident_mib_of(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: f64 = line.trim().split(' ').next().unwrap().parse().unwrap();
    kib / 1024.0
}

/// The value that half are below.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50)
}

/// The value that so many in a hundred are below.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent / 100).min(values.len() - 1)]
}

/// In milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
