//! Dynamic resource allocation with structured parameters (`k8s.io/dynamic-resource-allocation/structured`):
//! which devices of which pools satisfy the claims of a pod on a node.
//!
//! In come ResourceSlices, DeviceClasses, what is allocated already and the claims; out come allocation
//! results as they stand in a claim's status, or nothing. It must not write anything.

pub(crate) mod pools;

pub(crate) mod requests;

pub(crate) mod in_use;

pub(crate) mod constraints;

mod results;

pub(crate) mod allocator;

pub(crate) mod binding_conditions;

#[cfg(test)]
mod tests;
