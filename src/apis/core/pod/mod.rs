//! Pod: containers that live and die together.

pub mod defaults;
mod printer;
pub mod qos;
pub mod strategy;
pub mod validation;

use std::sync::LazyLock;

use crate::kind::{Builtin, Kind, Subresource};

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
        .selectable_by(&[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
        ])
        .selectable_as("spec.hostNetwork", "spec.hostNetwork", "false")
        .selectable_by(&["status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"])
        .with_generation()
        .printed(printer::columns(), printer::cells)
        .defaulted(defaults::pod)
        .governed_by(strategy::POD)
        .into()
});
