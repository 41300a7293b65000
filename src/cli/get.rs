//! `kubarium get clusters`, `kubarium get kubeconfig`

use clap::Subcommand;

use super::connection::Context;
use super::{Failure, say, state};

/// Show clusters or a kubeconfig.
#[derive(Subcommand)]
pub enum Get {
    /// The clusters that run on this machine.
    Clusters,
    /// A cluster's kubeconfig, on standard output.
    Kubeconfig {
        /// The cluster's name.
        #[arg(long, default_value = "kubarium", env = "KUBARIUM_NAME")]
        name: String,
    },
}

impl Get {
    /// Prints it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Get::Clusters => clusters(),
            Get::Kubeconfig { name } => kubeconfig(&name),
        }
    }
}

fn clusters() -> Result<(), Failure> {
    let records = state::running()?;
    if records.is_empty() {
        say("No cluster is running; start one with: kubarium up");
        return Ok(());
    }
    say(format!("{:<20} {:<30} {:>5} {:>8}", "NAME", "SERVER", "NODES", "PID"));
    for record in records {
        say(format!("{:<20} {:<30} {:>5} {:>8}", record.name, record.server, record.nodes, record.pid));
    }
    Ok(())
}

fn kubeconfig(name: &str) -> Result<(), Failure> {
    let record = state::find(name)?;
    let context = Context::load(&record.kubeconfig, name)?;
    say(super::kubeconfig::document(name, &context.access).trim_end());
    Ok(())
}
