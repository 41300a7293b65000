//! What the programs have in common: their names, what they run on, and how they say what they have to say.

use std::io::Write;

use tokio::runtime::{Builder, Runtime};

use crate::cli::outcome::Failure;

/// kube-apiserver's name.
pub const KUBE_APISERVER: &str = "kube-apiserver";
/// kube-controller-manager's name.
pub const KUBE_CONTROLLER_MANAGER: &str = "kube-controller-manager";
/// kube-scheduler's name.
pub const KUBE_SCHEDULER: &str = "kube-scheduler";
/// etcd's name.
pub const ETCD: &str = "etcd";

/// What serves.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::new("cannot start", error))
}

/// What clap has against a command line, without its heading and its advice.
pub fn said(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    Failure(first.trim_start_matches("error: ").trim_end().to_owned())
}

/// Says a line on the standard error, where the real ones log.
pub fn log(line: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", line.as_ref());
}
