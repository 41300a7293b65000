//! `MetricsError`: why a metric, or a number that follows from it, cannot be had; in upstream's words.

use std::fmt;

/// Why a metric cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MetricsError(String);

impl fmt::Display for MetricsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for MetricsError {
    fn from(why: String) -> MetricsError {
        MetricsError(why)
    }
}

impl From<&str> for MetricsError {
    fn from(why: &str) -> MetricsError {
        MetricsError(why.to_owned())
    }
}
