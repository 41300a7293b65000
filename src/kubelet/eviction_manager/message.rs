//! What is said of a pod that is evicted (`evictionMessage`).

use super::ranking::PodUse;
use super::signal::Signal;
use apimachinery::quantity::{Format, Quantity};

/// The threshold, and what is left.
pub(super) type Met = (Quantity, Quantity);

/// What the node was low on, by how much, and which containers use more than they request.
pub(super) fn of(signal: Signal, met: Option<&Met>, pod: &PodUse) -> String {
    let resource = signal.resource();
    let mut message = format!("The node was low on resource: {resource}. ");
    if let Some((threshold, available)) = met {
        message.push_str(&format!("Threshold quantity: {threshold}, available: {available}. "));
    }
    for (name, memory, disk) in &pod.containers {
        let used = match signal {
            Signal::Memory => *memory,
            Signal::NodeFs | Signal::ImageFs => *disk,
            Signal::NodeFsInodes | Signal::ImageFsInodes | Signal::Pids => continue,
        };
        let spec = pod.pod.spec.containers.iter().find(|spec| spec.name == *name);
        let request = spec.and_then(|spec| spec.resources.requests.get(resource));
        let request = request.and_then(|text| Quantity::parse(text).ok());
        let request = request.unwrap_or_else(|| Quantity::new(0, Format::DecimalSi));
        if used > request.value() {
            let used = Quantity::new(used, Format::BinarySi);
            message.push_str(&format!(
                "Container {name} was using {used}, request is {request}, has larger consumption of {resource}. "
            ));
        }
    }
    message
}
