//! How tokens of service accounts are used (`pkg/serviceaccount/metrics.go`). A token that is remembered
//! counts when it is looked at anew.

use std::sync::atomic::{AtomicU64, Ordering};

use component_base::metrics::plain_counter;

/// What is counted of a token that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenUse {
    /// It was made for a while, and is within that.
    Valid,
    /// It was made for an hour as pods have them, is good for a year, and the hour is over.
    Stale,
    /// It lives in a Secret and has no end.
    Legacy,
    /// The Secret was made for the account, which names it.
    LegacyAuto,
    /// The Secret was made by somebody.
    LegacyManual,
    /// The Secret has been marked as invalid.
    InvalidLegacyAuto,
}

/// By [`TokenUse`].
const NAMES: [(&str, &str); 6] = [
    ("serviceaccount_valid_tokens_total", "[ALPHA] Cumulative valid projected service account tokens used"),
    ("serviceaccount_stale_tokens_total", "[ALPHA] Cumulative stale projected service account tokens used"),
    ("serviceaccount_legacy_tokens_total", "[ALPHA] Cumulative legacy service account tokens used"),
    ("serviceaccount_legacy_auto_token_uses_total", "[ALPHA] Cumulative auto-generated legacy tokens used"),
    (
        "serviceaccount_legacy_manual_token_uses_total",
        "[ALPHA] Cumulative manually created legacy tokens used",
    ),
    (
        "serviceaccount_invalid_legacy_auto_token_uses_total",
        "[ALPHA] Cumulative invalid auto-generated legacy tokens used",
    ),
];

/// Counters of one apiserver.
#[derive(Debug, Default)]
pub struct TokenUses([AtomicU64; NAMES.len()]);

impl TokenUses {
    /// One more.
    pub(crate) fn count(&self, what: TokenUse) {
        self.0[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// In Prometheus' text format.
    pub(crate) fn render(&self, out: &mut String) {
        for (about, count) in NAMES.into_iter().zip(&self.0) {
            plain_counter(out, about, count.load(Ordering::Relaxed));
        }
    }
}
