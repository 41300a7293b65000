//! One object, many versions: each a form of the same.

use super::*;
use kubarium::apis::runtime_config::RuntimeConfig;

const LEGACY: [&str; 3] = ["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"];

async fn server() -> Server {
    let config = RuntimeConfig::parse(["api/legacy=true"]).unwrap();
    Server::serving(Arc::new(Scheme::of(&config.served()))).await
}

fn collection(version: &str, plural: &str) -> String {
    format!("/apis/{version}/namespaces/default/{plural}")
}

#[tokio::test]
async fn a_deployment_can_be_read_and_written_through_each_version() {
    let server = server().await;
    let spec = json!({"template": {"metadata": {"labels": {"app": "old"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    let old = json!({"metadata": {"name": "old"}, "spec": spec});
    let created = server.create(&collection("extensions/v1beta1", "deployments"), old).await;
    assert_eq!(created["apiVersion"], "extensions/v1beta1");
    assert_eq!(created["spec"]["selector"]["matchLabels"]["app"], "old");
    assert_eq!(created["spec"]["strategy"]["rollingUpdate"]["maxSurge"], 1);
    assert_eq!(created["spec"]["progressDeadlineSeconds"], i32::MAX);
    for version in LEGACY.iter().chain(&["apps/v1"]) {
        let path = format!("{}/old", collection(version, "deployments"));
        let read = server.get(&path).await;
        assert_eq!(
            (&read["apiVersion"], &read["metadata"]["uid"]),
            (&json!(version), &created["metadata"]["uid"])
        );
        let patch = json!({"metadata": {"labels": {"by": version.replace('/', ".")}}}).to_string();
        let answer = server.patch(&path, "application/merge-patch+json", &patch).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
        let today = server.get(&format!("{DEPLOYMENTS}/old")).await;
        assert_eq!(today["metadata"]["labels"]["by"], version.replace('/', "."));
        let line = format!("GET {}?watch=1&resourceVersion=0", collection(version, "deployments"));
        let event = server.first_event(&line).await;
        assert_eq!(event["object"]["apiVersion"], *version, "{event}");
    }
    let path = format!("{}/old", collection("apps/v1beta1", "deployments"));
    let patch = r#"{"spec":{"rollbackTo":{"revision":2}}}"#;
    let answer = server.patch(&path, "application/merge-patch+json", patch).await;
    assert_eq!(answer.json()["spec"]["rollbackTo"]["revision"], 2, "{}", answer.text);
    let warning = "299 - \"apps/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment\"";
    assert_eq!(answer.warnings(), [warning]);
    let today = server.get(&format!("{DEPLOYMENTS}/old")).await;
    assert_eq!(today["metadata"]["annotations"]["deprecated.deployment.rollback.to"], "2");
    assert!(today["spec"].get("rollbackTo").is_none());
    let wish = json!({"name": "old", "rollbackTo": {"revision": 1}});
    let answer = server.call(&format!("POST {path}/rollback"), &wish).await;
    assert_eq!(
        answer.json()["message"],
        "rollback request for deployment \"old\" succeeded",
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn old_versions_have_a_scale_of_their_own() {
    let server = server().await;
    server.create(DEPLOYMENTS, deployment("web")).await;
    for (replicas, version) in LEGACY.iter().enumerate() {
        let path = format!("{}/web/scale", collection(version, "deployments"));
        let patch = json!({"spec": {"replicas": replicas}}).to_string();
        let scale = server.patch(&path, "application/merge-patch+json", &patch).await.json();
        assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!(version)), "{scale}");
        let status = json!({"replicas": 0, "selector": {"app": "web"}, "targetSelector": "app=web"});
        assert_eq!(scale["status"], status);
        let mut put = server.get(&path).await;
        put["spec"]["replicas"] = 7.into();
        let answer = server.call(&format!("PUT {path}"), &put).await;
        assert_eq!((answer.code, &answer.json()["spec"]["replicas"]), (200, &json!(7)), "{}", answer.text);
        let form = server.get_as(&path, protobuf::PROTOBUF).await;
        let definition = format!("io.k8s.api.{}.Scale", version.replace('/', "."));
        assert_eq!(protobuf::object(&definition, &form.bytes), server.get(&path).await);
        let list = server.get(&format!("/apis/{version}")).await;
        let resources = list["resources"].as_array().unwrap();
        let scale = resources.iter().find(|resource| resource["name"] == "deployments/scale").unwrap();
        assert_eq!((&scale["kind"], &scale["group"]), (&json!("Scale"), &Value::Null));
    }
    assert_eq!(server.get(&format!("{DEPLOYMENTS}/web/scale")).await["status"]["selector"], "app=web");
}

#[tokio::test]
async fn old_versions_are_discovered_behind_todays() {
    let server = server().await;
    let apps = server.get("/apis/apps").await;
    let versions: Vec<&Value> =
        apps["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(versions, ["v1", "v1beta2", "v1beta1"]);
    assert!(server.get("/apis/extensions/v1beta1").await["resources"].is_array());
    let document = server.get("/openapi/v3/apis/extensions/v1beta1").await;
    let spec = &document["components"]["schemas"]["io.k8s.api.extensions.v1beta1.DeploymentSpec"];
    assert!(spec["properties"]["rollbackTo"].is_object());
    let modern = Server::start().await;
    assert_eq!(modern.call("GET /apis/extensions/v1beta1", &Value::Null).await.code, 404);
}

#[tokio::test]
async fn an_autoscaler_of_v1_keeps_in_annotations_what_it_has_no_field_for() {
    let server = Server::start().await;
    let memory = json!({"type": "Resource", "resource": {"name": "memory",
        "target": {"type": "Utilization", "averageUtilization": 60}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let v2 = json!({"metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [memory]}});
    server.create(&collection("autoscaling/v2", "horizontalpodautoscalers"), v2).await;
    let path = format!("{}/a", collection("autoscaling/v1", "horizontalpodautoscalers"));
    let v1 = server.get(&path).await;
    let annotation = &v1["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"];
    assert!(annotation.as_str().unwrap().contains("\"targetAverageUtilization\":60"), "{v1}");
    let patch = r#"{"spec":{"targetCPUUtilizationPercentage":50}}"#;
    let answer = server.patch(&path, "application/merge-patch+json", patch).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let path = format!("{}/a", collection("autoscaling/v2", "horizontalpodautoscalers"));
    let metrics = server.get(&path).await["spec"]["metrics"].clone();
    let names: Vec<&Value> =
        metrics.as_array().unwrap().iter().map(|metric| &metric["resource"]["name"]).collect();
    assert_eq!(names, ["cpu", "memory"], "{metrics}");
}

#[tokio::test]
async fn a_cron_job_of_v2alpha1_has_the_fields_that_there_were() {
    let server = server().await;
    let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i"}]}}}});
    let today = json!({"metadata": {"name": "c"}, "spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC",
        "jobTemplate": template}});
    server.create(&collection("batch/v1", "cronjobs"), today).await;
    let path = format!("{}/c", collection("batch/v2alpha1", "cronjobs"));
    let old = server.get(&path).await;
    assert_eq!((&old["spec"]["schedule"], old["spec"].get("timeZone")), (&json!("* * * * *"), None));
    let form = server.get_as(&path, protobuf::PROTOBUF).await;
    assert_eq!(protobuf::object("io.k8s.api.batch.v2alpha1.CronJob", &form.bytes), old);
    let strict = json!({"spec": {"timeZone": "Etc/UTC"}}).to_string();
    let path = format!("{path}?fieldValidation=Strict");
    let answer = server.patch(&path, "application/merge-patch+json", &strict).await;
    assert_eq!((answer.code, answer.text.contains("unknown field")), (422, true), "{}", answer.text);
}
