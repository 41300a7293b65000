//! What is logged, to the standard error.

use std::sync::Arc;

use apiserver::endpoints::routes::debug::Verbosity;
use tracing_subscriber::EnvFilter;

use super::style;

/// Starts the log; `RUST_LOG` says more than the number of `-v` does. What comes back sets another number.
pub(crate) fn start(verbose: u8) -> Verbosity {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level(verbose)));
    // Colour codes are for terminals: in a file they are noise.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let log = log.with_ansi(style::colours_stderr()).with_filter_reloading();
    let reload = log.reload_handle();
    log.init();
    Verbosity(Arc::new(move |number| {
        let filter = EnvFilter::new(of_klog(number));
        reload.reload(filter).map_err(|error| error.to_string())
    }))
}

fn level(verbose: u8) -> &'static str {
    match verbose {
        0 => "error",
        1 => "kubarium=info,warn",
        2 => "kubarium=debug,info",
        _ => "kubarium=trace,debug",
    }
}

/// Of klog's numbers 0 and 1 are for whoever runs a cluster, 2 is for what goes on, 4 for debugging, and more
/// for following it.
fn of_klog(number: u32) -> &'static str {
    level(match number {
        0 | 1 => 0,
        2 | 3 => 1,
        4 | 5 => 2,
        _ => 3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_klog_is_a_level() {
        let levels = [0, 2, 4, 6, u32::MAX].map(of_klog);
        let wanted = ["error", "kubarium=info,warn", "kubarium=debug,info", "kubarium=trace,debug"];
        assert_eq!(levels[..4], wanted);
        assert_eq!(levels[4], wanted[3]);
    }
}
