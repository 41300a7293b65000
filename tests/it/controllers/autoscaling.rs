//! Autoscalers keep sizes between their bounds, and say why they do no more.

use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition, deployment};

fn autoscaler(name: &str, least: i64, most: i64) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
    let metrics = json!([{"type": "Resource", "resource": resource}]);
    let spec =
        json!({"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most, "metrics": metrics});
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn has_size(fixture: &Fixture, name: &str, size: i64) {
    let look =
        || async { (fixture.get(&DEPLOYMENTS, name).await?["spec"]["replicas"] == size).then_some(()) };
    fixture.eventually(&format!("{name} has the size {size}"), look).await;
}

/// What the controllers count.
async fn counted(fixture: &Fixture) -> String {
    let path = "/kubarium/v1/components/metrics?name=kube-controller-manager";
    let request = http::Request::get(path).body(Default::default()).unwrap();
    let body = fixture.cluster.client().raw(request).await.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn sizes_are_kept_between_their_bounds() {
    let fixture = Fixture::start().await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 1, "nginx", json!({}))).await;
    for name in ["web", "missing"] {
        fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, autoscaler(name, 2, 4)).await;
    }
    has_size(&fixture, "web", 2).await;
    let words = "New size: 2; reason: Current number of replicas below Spec.MinReplicas";
    fixture.told("SuccessfulRescale", words).await;
    fixture.patch(&DEPLOYMENTS, "web", json!({"spec": {"replicas": 9}})).await;
    fixture.pass(Duration::from_secs(16)).await;
    has_size(&fixture, "web", 4).await;
    fixture.pass(Duration::from_secs(16)).await;
    let unable = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics \
                  from resource metrics API: the server could not find the requested resource (get \
                  pods.metrics.k8s.io)";
    fixture.told("FailedGetResourceMetric", unable).await;
    let first =
        "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: ";
    fixture.told("FailedComputeMetricsReplicas", &format!("{first}{unable}")).await;
    let measured = || async {
        let autoscaler = fixture.get(&HORIZONTAL_POD_AUTOSCALERS, "web").await?;
        let active = condition(&autoscaler, "ScalingActive").clone();
        (active["reason"] == "FailedGetResourceMetric").then_some((autoscaler, active))
    };
    let (autoscaler, active) = fixture.eventually("it says that it cannot measure", measured).await;
    let message = format!("the HPA was unable to compute the replica count: {unable}");
    assert_eq!((&active["status"], &active["message"]), (&json!("False"), &json!(message)));
    assert_eq!(condition(&autoscaler, "AbleToScale")["reason"], "SucceededGetScale");
    let status = &autoscaler["status"];
    assert_eq!((&status["currentReplicas"], &status["desiredReplicas"]), (&json!(4), &json!(4)));
    assert_eq!(status["currentMetrics"], json!([{"type": ""}]));
    assert!(status["lastScaleTime"].is_string());

    let counted = counted(&fixture).await;
    for line in [
        "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 2",
        "horizontal_pod_autoscaler_controller_desired_replicas{hpa_name=\"web\",namespace=\"test\"} 4",
        "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"scale_up\",error=\"none\"} 1",
        "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"scale_down\",error=\"none\"} 1",
        "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"none\",error=\"internal\"} ",
        "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds_count{action=\"scale_up\",error=\"none\"} 1",
        "horizontal_pod_autoscaler_controller_metric_computation_total{action=\"none\",error=\"internal\",metric_type=\"Resource\"} ",
        "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds_count{action=\"none\",error=\"internal\",metric_type=\"Resource\"} ",
    ] {
        assert!(counted.lines().any(|said| said.starts_with(line)), "{line}: {counted}");
    }

    let missing = fixture.get(&HORIZONTAL_POD_AUTOSCALERS, "missing").await.unwrap();
    let able = condition(&missing, "AbleToScale");
    let message = "the HPA controller was unable to get the target's current scale: deployments.apps \"missing\" not found";
    assert_eq!((&able["reason"], &able["message"]), (&json!("FailedGetScale"), &json!(message)));
}
