//! The command line of kubarium.
//! Next: cluster.rs

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    kubarium::cli::run(kubarium::cli::Arguments::parse())
}
