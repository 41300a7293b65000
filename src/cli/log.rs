//! What is logged, to the standard error.

use super::style;

/// Starts the log; `RUST_LOG` says more than the number of `-v` does.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        0 => "error",
        1 => "kubarium=info,warn",
        2 => "kubarium=debug,info",
        _ => "kubarium=trace,debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| default.parse().unwrap_or_default());
    // Colour codes are for terminals: in a file they are noise.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(style::colours_stderr()).init();
}
