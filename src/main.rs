//! The command line of kubarium.
//! Next: src/cluster.rs

use std::process::ExitCode;

/// Objects are many small pieces of memory that one thread makes and another lets go of, which the system's
/// allocator is not made for. A program that uses the library has its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kubarium::cli::run(kubarium::cli::arguments())
}
