//! Why a metric of a HorizontalPodAutoscaler cannot be had. The metrics APIs are served by aggregated
//! servers, which a bare cluster does not have.

use serde_json::Value;

use crate::controller::Reconcile;

/// What is said where an API is served after all.
const UNREAD: &str = "metrics that are served are not read by this controller manager";

/// A metric that cannot be had.
pub(super) struct Unavailable {
    /// The reason of the condition and of its event.
    pub reason: &'static str,
    /// What the condition and its event say.
    pub message: String,
    /// The number of replicas, as the sum of all metrics says it.
    pub error: String,
}

/// Asks for a metric (`computeReplicasForMetric`).
pub(super) async fn unavailable(ctx: &Reconcile, namespace: &str, metric: &Value) -> Unavailable {
    let name = |source: &str| metric[source]["metric"]["name"].as_str().unwrap_or_default().to_owned();
    match metric["type"].as_str().unwrap_or_default() {
        "Resource" => resource(ctx, &metric["resource"], "FailedGetResourceMetric", "resource").await,
        "ContainerResource" => {
            let (source, reason) = (&metric["containerResource"], "FailedGetContainerResourceMetric");
            resource(ctx, source, reason, "container").await
        }
        "External" => {
            let name = name("external");
            let path = format!("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{name}");
            let why = refusal(ctx, &path, &format!("get {name}.external.metrics.k8s.io")).await;
            let message = format!(
                "unable to get external metric {name}: unable to fetch metrics from external metrics API: {why}"
            );
            let error = format!("failed to get {name} external metric value: {message}");
            Unavailable { reason: "FailedGetExternalMetric", message, error }
        }
        "Object" => custom(ctx, "FailedGetObjectMetric", "object", &name("object")).await,
        _ => custom(ctx, "FailedGetPodsMetric", "pods", &name("pods")).await,
    }
}

async fn resource(ctx: &Reconcile, source: &Value, reason: &'static str, what: &str) -> Unavailable {
    let name = source["name"].as_str().unwrap_or_default();
    let by = if source["target"]["averageValue"].is_null() { "utilization" } else { "usage" };
    let why = refusal(ctx, "/apis/metrics.k8s.io/v1beta1/pods", "get pods.metrics.k8s.io").await;
    let message = format!(
        "failed to get {name} {by}: unable to get metrics for resource {name}: unable to fetch metrics from resource \
         metrics API: {why}"
    );
    let error = format!("failed to get {name} {what} metric value: {message}");
    Unavailable { reason, message, error }
}

async fn custom(ctx: &Reconcile, reason: &'static str, what: &str, name: &str) -> Unavailable {
    let why = match ctx.client.get_path("/apis/custom.metrics.k8s.io").await {
        Err(error) if error.is_not_found() => {
            "no custom metrics API (custom.metrics.k8s.io) registered".into()
        }
        Err(error) => error.to_string(),
        Ok(_) => UNREAD.into(),
    };
    let message =
        format!("unable to get metric {name}: unable to fetch metrics from custom metrics API: {why}");
    let error = format!("failed to get {what} metric value: {message}");
    Unavailable { reason, message, error }
}

/// What the server says to a request for metrics, in the words of client-go.
async fn refusal(ctx: &Reconcile, path: &str, request: &str) -> String {
    match ctx.client.get_path(path).await {
        Err(error) if error.is_not_found() => {
            format!("the server could not find the requested resource ({request})")
        }
        Err(error) => error.to_string(),
        Ok(_) => UNREAD.into(),
    }
}
