//! The command line of kubarium.
//! Next: src/cluster.rs

use std::process::ExitCode;

/// Objects are many small pieces of memory that one thread makes and another lets go of, which the system's
/// allocator is not made for. A program that uses the library has its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let as_called = kubarium::cli::stand_in::run_as_called();
    as_called.unwrap_or_else(|| kubarium::cli::run(kubarium::cli::arguments()))
}
