//! Messages of a request, as they come in.

pub use etcd_api::frames::{MAX_RECEIVED_BYTES, framed};

/// The messages of a request, one after the other.
pub type Received = etcd_api::frames::ReceivedMessages<axum::body::Body>;
