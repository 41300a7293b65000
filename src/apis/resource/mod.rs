//! The group `resource.k8s.io/v1`: devices, and who claims them.

pub mod device_class;
pub mod device_selector;
pub mod device_taints;
pub mod resource_claim;
pub mod resource_slice;

mod allocation;
mod capacity;
mod devices;
mod group;
mod names;
mod slice_devices;

use super::kind::Builtin;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[
    &device_class::DEVICE_CLASSES,
    &resource_claim::RESOURCE_CLAIMS,
    &resource_claim::RESOURCE_CLAIM_TEMPLATES,
    &resource_slice::RESOURCE_SLICES,
];
