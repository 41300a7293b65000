//! A request (`k8s.io/apiserver/pkg/endpoints/request`): what it asks for, read from its path
//! ([`RequestInfo`]), and what is found out about it on its way ([`RequestContext`]).

mod bounded_text;
mod context;
mod disturbance;
mod field_changes;
mod info;
mod passed_on;
mod second_checks;
mod seen_body;
mod told_values;
mod until_sent;
mod warning;

pub use bounded_text::{MAX_TOLD_BYTES, bounded};
pub use context::{Announced, LONG_BYTES, RequestContext};
pub use disturbance::{IsSilent, RequestDisturbance, WatchStage};
pub use info::{BESIDE, RequestInfo, is_below, is_true, query_pairs, query_value};
pub use passed_on::PassedOn;
pub use second_checks::SecondChecks;
pub use seen_body::seen;
pub use told_values::{ValueReader, hide_unreadable};
pub use until_sent::until_sent;
pub(crate) use warning::warning_header;

/// On an answer: there is no such path. For those who tell the story of a request.
#[derive(Clone, Copy, Debug)]
pub struct UnknownPath;
