//! `MetricsError`: why a metric, or a number that follows from it, cannot be had; in upstream's words.

golang::text_error! {
    /// Why a metric cannot be had.
    pub(super) struct MetricsError;
}
