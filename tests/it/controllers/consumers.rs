//! What uses the machine because it is told to: agnhost's `resource-consumer`, behind which an autoscaler stands, and
//! programs that do nothing else.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use kubarium::apis::apiregistration::api_service::API_SERVICES;
use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service::SERVICES;
use kubarium::cluster::{Components, Config};
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE};

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.63";

async fn measured() -> Fixture {
    Fixture::start_configured(Config::new().components(Components::ALL).metrics_server(true)).await
}

async fn ended_with(fixture: &Fixture, pod: &str, reason: &str) {
    let look = || async {
        let status = &fixture.get(&PODS, pod).await?["status"]["containerStatuses"][0];
        let ended = [&status["state"]["terminated"], &status["lastState"]["terminated"]];
        ended.iter().any(|ended| ended["reason"] == reason && ended["exitCode"] == 137).then_some(())
    };
    fixture.eventually(&format!("{pod} ends with {reason}"), look).await;
}

async fn post(fixture: &Fixture, path: &str, form: &str) -> (u16, String) {
    let uri = format!("/api/v1/namespaces/{NAMESPACE}/{path}");
    let request = Request::post(uri).header("content-type", "application/x-www-form-urlencoded");
    let response = fixture.client.raw(request.body(Body::from(form.to_owned())).unwrap()).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&body).into_owned())
}

async fn deploy(fixture: &Fixture, name: &str, args: Value) {
    let resources =
        json!({"requests": {"cpu": "500m", "memory": "100Mi"}, "limits": {"cpu": "500m", "memory": "200Mi"}});
    let container = json!({"name": "main", "image": AGNHOST, "args": args, "resources": resources});
    let labels = json!({"app": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
    fixture.create(&DEPLOYMENTS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    let spec = json!({"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]});
    fixture.create(&SERVICES, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    let look =
        || async { (fixture.get(&DEPLOYMENTS, name).await?["status"]["readyReplicas"] == 1).then_some(()) };
    fixture.eventually(&format!("{name} is ready"), look).await;
}

#[tokio::test]
async fn consumers_use_what_they_are_told_to_and_are_scaled() {
    let fixture = measured().await;
    deploy(&fixture, "rc", json!(["resource-consumer"])).await;
    let controller = json!([
        "resource-consumer-controller",
        "--consumer-service-name=rc",
        format!("--consumer-service-namespace={NAMESPACE}"),
        "--consumer-port=80"
    ]);
    deploy(&fixture, "rc-ctrl", controller).await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "rc"});
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 20}});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": resource}]});
    fixture
        .create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, json!({"metadata": {"name": "rc"}, "spec": spec}))
        .await;
    fixture.pass(Duration::from_secs(60)).await;
    let size = async || fixture.get(&DEPLOYMENTS, "rc").await.unwrap()["spec"]["replicas"].clone();
    assert_eq!(size().await, 1);
    let form = "millicores=250&durationSec=600&requestSizeMillicores=100";
    let (code, said) = post(&fixture, "services/rc-ctrl:80/proxy/ConsumeCPU", form).await;
    let wanted = "RC manager: sending 2 requests to consume 100 millicores each and 1 request to consume 50 millicores\n\
        Consumed 100 millicores\nConsumed 100 millicores\nConsumed 50 millicores\n";
    assert_eq!((code, said.as_str()), (200, wanted));
    fixture.pass(Duration::from_secs(120)).await;
    // Of half a processor half is used: at a fifth each, there are three for it.
    assert_eq!(size().await, 3);
    fixture.cluster.stop().await;
}

/// What upstream's `test/e2e/autoscaling/horizontal_pod_autoscaling_external_metrics.go` asks for: of two
/// metrics of a server in a pod the one that wants more decides.
#[tokio::test]
async fn metrics_of_a_server_in_a_pod_scale_others() {
    let fixture = measured().await;
    deploy(&fixture, "rc", json!(["resource-consumer"])).await;
    deploy(&fixture, "metrics", json!(["external-metrics", "--port=8080"])).await;
    let (group, version) = ("external.metrics.k8s.io", "v1beta1");
    let service = json!({"name": "metrics", "namespace": NAMESPACE, "port": 80});
    let spec = json!({"group": group, "version": version, "service": service, "insecureSkipTLSVerify": true,
        "groupPriorityMinimum": 100, "versionPriority": 100});
    let name = format!("{version}.{group}");
    fixture.create(&API_SERVICES, "", json!({"metadata": {"name": name}, "spec": spec})).await;
    let metric = |name: &str, each: &str| {
        let target = json!({"type": "AverageValue", "averageValue": each});
        json!({"type": "External", "external": {"metric": {"name": name}, "target": target}})
    };
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "rc"});
    let metrics = [metric("queue_messages_ready", "50"), metric("http_requests_total", "200")];
    let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5, "metrics": metrics,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}});
    let scaler = json!({"metadata": {"name": "rc"}, "spec": spec});
    fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, scaler).await;
    let has = async |size: u32| {
        let look =
            || async { (fixture.get(&DEPLOYMENTS, "rc").await?["spec"]["replicas"] == size).then_some(()) };
        fixture.eventually(&format!("there are {size}"), look).await;
    };
    // 100 messages for 50 each are two, 500 requests for 200 each three.
    has(3).await;
    for (metric, value, size) in [("http_requests_total", 100, 2), ("queue_messages_ready", 0, 1)] {
        let path = format!("services/https:metrics:80/proxy/set/{metric}?value={value}");
        assert_eq!(post(&fixture, &path, "").await.0, 200);
        has(size).await;
    }
    fixture.cluster.stop().await;
}

#[tokio::test]
async fn whoever_uses_more_memory_than_it_may_is_killed() {
    let fixture = measured().await;
    deploy(&fixture, "rc", json!(["resource-consumer"])).await;
    let pods = fixture.pods("app=rc").await;
    let name = pods[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let path = format!("pods/{name}:8080/proxy/ConsumeMem");
    let (code, _) = post(&fixture, &path, "megabytes=20&durationSec=60").await;
    assert_eq!(code, 200);
    // Whoever is killed answers nobody.
    let killing = post(&fixture, &path, "megabytes=500&durationSec=60");
    tokio::select! {
        _ = killing => {}
        () = ended_with(&fixture, &name, "OOMKilled") => {}
    }
    ended_with(&fixture, &name, "OOMKilled").await;
    for (name, image, args) in [
        (
            "memory-demo-2",
            "polinux/stress",
            json!(["stress", "--vm", "1", "--vm-bytes", "250M", "--vm-hang", "1"]),
        ),
        (
            "hog",
            "vish/stress",
            json!(["-mem-total", "950Mi", "-mem-alloc-size", "50Mi", "-mem-alloc-sleep", "1s"]),
        ),
    ] {
        let limits = json!({"requests": {"memory": "50Mi"}, "limits": {"memory": "100Mi"}});
        let container = json!({"name": "main", "image": image, "args": args, "resources": limits});
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
        fixture.create(&PODS, NAMESPACE, pod).await;
        fixture.pass(Duration::from_secs(10)).await;
        ended_with(&fixture, name, "OOMKilled").await;
    }
    fixture.cluster.stop().await;
}
