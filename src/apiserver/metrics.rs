//! What the server counts (`endpoints/metrics`), kept in a value and not in globals: one per cluster.

mod counts;
mod measured_request;
mod request_labels;
mod request_series;
mod watch_counts;

pub use component_base::metrics::{Render, heading};
pub use counts::Metrics;
pub(crate) use measured_request::{MeasuredRequest, measured_path};
pub(crate) use request_labels::{Cleaned, RequestLabels};
pub(crate) use watch_counts::WatchCounts;
