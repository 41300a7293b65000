//! Components in processes of their own: `kubarium apiserver`, and `controller-manager`, `scheduler` and
//! `kubelet`, which ask an apiserver that their kubeconfig names.
//!
//! Each waits for a server that is away, and ends at once when it is told to. Of several controller managers
//! or schedulers one works, whoever holds the Lease (`leading`).

pub mod apiserver;
pub mod controller_manager;
pub mod kubelet;
pub mod scheduler;

mod connecting;
mod leading;
mod serving;

use crate::cli::outcome::Failure;
use crate::cli::up;

/// Runs until it is told to end.
fn block_on(running: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    up::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("cannot start", error))?;
    let outcome = runtime.block_on(running);
    // Whoever still asks somebody is not waited for.
    runtime.shutdown_background();
    outcome
}

/// A text for a person, as the end of the process.
fn failed(why: impl std::fmt::Display) -> Failure {
    Failure(why.to_string())
}
