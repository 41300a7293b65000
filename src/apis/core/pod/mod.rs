//! Pod: containers that live and die together.

pub mod defaults;
pub mod fields;
pub mod gates;
mod printer;
pub mod qos;
pub mod strategy;
pub mod validation;

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};
use crate::quota::pods::POD_USAGE;
use fields::FIELDS;
use gates::{POD_GATES, POD_STATUS_GATES};

/// `pods`
pub static PODS: Builtin = LazyLock::new(|| {
    Kind::builtin("", "v1", "Pod", "pods", "io.k8s.api.core.v1")
        .short(&["po"])
        .in_categories(&["all"])
        .with(&[
            Subresource::Attach,
            Subresource::Binding,
            Subresource::EphemeralContainers,
            Subresource::Eviction,
            Subresource::Exec,
            Subresource::Log,
            Subresource::PortForward,
            Subresource::Proxy,
            Subresource::Resize,
            Subresource::Status,
        ])
        .selectable_with(&FIELDS)
        .with_generation()
        .status_resets(&["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"])
        .gated("/spec", POD_GATES)
        .gated("/status", POD_STATUS_GATES)
        .returns_deleted()
        .measured(&POD_USAGE)
        .printed(printer::columns(), printer::cells)
        .defaulted(defaults::pod)
        .governed_by(strategy::POD)
        .into()
});
