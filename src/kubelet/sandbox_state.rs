//! Where the sandbox of a pod is on its way.

use super::container_runtime::services::{Call, PodSandboxStatus};
use apimachinery::time::Time;

/// The pod's sandbox: what its containers share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sandbox {
    None,
    /// Its call has not returned yet.
    Creating {
        began: Time,
        call: Call<PodSandboxStatus>,
        attempt: u32,
    },
    /// It could not be made, and is tried again.
    BackOff {
        until: Time,
        attempt: u32,
    },
    Ready(PodSandboxStatus),
    Stopped(PodSandboxStatus),
}
