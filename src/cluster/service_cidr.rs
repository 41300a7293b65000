//! The ServiceCIDR `kubernetes` of a data dir that is used again
//! (`pkg/controlplane/controller/defaultservicecidr`): what is stored counts, and not the flag.

use serde_json::json;

use apimachinery::status::Status;
use apis::core::event::EVENTS;
use apis::networking::service_cidr::SERVICE_CIDRS;
use apis::networking::service_ranges::ServiceRanges;
use apis::tree::texts;
use client_go::client::Client;

const NAME: &str = "kubernetes";
const COMPONENT: &str = "kubernetes-service-cidr-controller";

/// Stores the ranges when none are stored. A second one is added; others are told in an event, and go on.
///
/// # Errors
/// The server's refusal.
pub(crate) async fn keep(client: &Client, ranges: &ServiceRanges) -> Result<(), Status> {
    // Whoever asks for the kind has the object made.
    let range = client.get(&SERVICE_CIDRS, "", NAME).await?;
    let mut tree = range.to_value();
    let stored: Vec<String> = texts(&tree, "spec.cidrs").into_iter().map(str::to_owned).collect();
    let wanted = ranges.texts();
    if stored == wanted {
        return Ok(());
    }
    if wanted.len() == 2 && stored == wanted[..1] {
        tracing::info!(?stored, ?wanted, "updating default ServiceCIDR from single-stack to dual-stack");
        tree["spec"]["cidrs"] = wanted.into();
        return client.update(&SERVICE_CIDRS, "", NAME, tree).await.map(drop);
    }
    let message = format!(
        "The default ServiceCIDR [{}] does not match the controller flag configurations [{}]",
        stored.join(" "),
        wanted.join(" ")
    );
    tracing::warn!("{message}; the ServiceCIDR counts");
    let event = json!({
        "metadata": {"generateName": format!("{NAME}."), "namespace": "default"},
        "involvedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "name": NAME,
            "uid": range.metadata.uid, "resourceVersion": tree["metadata"]["resourceVersion"]},
        "reason": "KubernetesDefaultServiceCIDRInconsistent",
        "message": message,
        "type": "Warning",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "count": 1,
    });
    client.create(&EVENTS, "default", event).await.map(drop)
}
