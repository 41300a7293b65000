//! Lines as klog writes them, which agnhost's programs log through.

use chrono::{DateTime, Utc};

/// A line without its end.
pub(crate) fn of(text: String, at: DateTime<Utc>) -> String {
    format!("I{}       1 log.go:245] {text}", at.format("%m%d %H:%M:%S%.6f"))
}
