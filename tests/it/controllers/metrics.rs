//! What pods use is a number: it is served, it scales, and it kills.

use std::time::Duration;

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::autoscaling::horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALERS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::pod::PODS;
use kubarium::cluster::{Components, Config};
use serde_json::{Value, json};

use super::support::{Fixture, NAMESPACE, condition, deployment};

const POD_METRICS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/test/pods";

async fn measured() -> Fixture {
    measured_with(Config::new()).await
}

async fn measured_with(config: Config) -> Fixture {
    let config = config.components(Components::ALL).metrics_server(true).metrics_adapter(true);
    Fixture::start_configured(config).await
}

async fn runs(fixture: &Fixture, name: &str) {
    let look = || async {
        let pod = fixture.get(&PODS, name).await?;
        (condition(&pod, "Ready")["status"] == "True").then_some(())
    };
    fixture.eventually(&format!("pod {name} is ready"), look).await;
}

async fn has_size(fixture: &Fixture, name: &str, size: i64) {
    let look = || async {
        let found = fixture.get(&DEPLOYMENTS, name).await?;
        (found["spec"]["replicas"] == size && found["status"]["readyReplicas"].as_i64().unwrap_or(0) == size)
            .then_some(())
    };
    fixture.eventually(&format!("{name} has the size {size}"), look).await;
}

fn container(name: &str, resources: Value) -> Value {
    json!({"name": name, "image": "registry.k8s.io/pause:3.10", "resources": resources})
}

fn autoscaler(name: &str, bounds: (i64, i64), metric: Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    let spec = json!({"scaleTargetRef": target, "minReplicas": bounds.0, "maxReplicas": bounds.1,
        "metrics": [metric], "behavior": behavior});
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn what_pods_and_nodes_use_is_served() {
    let fixture = measured().await;
    let requests = json!({"requests": {"cpu": "200m", "memory": "100Mi"}});
    let annotations = json!({"kubarium.dev/usage-cpu": "150m", "kubarium.dev/usage-cpu.side": "steps 50m"});
    let pod = |name: &str| {
        let metadata = json!({"name": name, "labels": {"app": name}, "annotations": annotations});
        let containers = [container("web", requests.clone()), container("side", json!({}))];
        json!({"metadata": metadata, "spec": {"containers": containers, "terminationGracePeriodSeconds": 0}})
    };
    fixture.create(&PODS, NAMESPACE, pod("web")).await;
    runs(&fixture, "web").await;
    fixture.pass(Duration::from_secs(20)).await;
    fixture.create(&PODS, NAMESPACE, pod("fresh")).await;
    runs(&fixture, "fresh").await;
    let list = fixture.client.get_path(POD_METRICS).await.unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("PodMetricsList"), 1));
    let web = &list["items"][0];
    assert_eq!((&web["metadata"]["name"], &web["window"]), (&json!("web"), &json!("15s")));
    let usage = json!([
        {"name": "web", "usage": {"cpu": "150000000n", "memory": "51200Ki"}},
        {"name": "side", "usage": {"cpu": "50000000n", "memory": "8192Ki"}},
    ]);
    assert_eq!(web["containers"], usage);
    let chosen = format!("{POD_METRICS}?labelSelector=app%21%3Dweb");
    assert_eq!(fixture.client.get_path(&chosen).await.unwrap()["items"], json!([]));
    let node = fixture.client.get_path("/apis/metrics.k8s.io/v1beta1/nodes/node-1").await.unwrap();
    // What has just started counts where nobody waits for two looks.
    let cpu: u64 = node["usage"]["cpu"].as_str().unwrap().trim_end_matches('n').parse().unwrap();
    assert!((250_000_000..=450_000_000).contains(&cpu), "{node}");
    let one = fixture.client.get_path(&format!("{POD_METRICS}/fresh")).await.unwrap_err();
    assert_eq!(one.message, "podmetrics.metrics.k8s.io \"test/fresh\" not found");
    let watch = fixture.client.get_path(&format!("{POD_METRICS}?watch=true")).await.unwrap_err();
    let words = "watch is not supported on resources of kind \"pods.metrics.k8s.io\"";
    assert_eq!((watch.code, &*watch.message), (405, words));
    let summary = fixture.client.get_path("/api/v1/nodes/node-1/proxy/stats/summary").await.unwrap();
    let of_web =
        summary["pods"].as_array().unwrap().iter().find(|pod| pod["podRef"]["name"] == "web").unwrap();
    assert_eq!(of_web["containers"][0]["cpu"]["usageNanoCores"], 150_000_000);
    let groups = fixture.client.get_path("/apis").await.unwrap();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().filter_map(|group| group["name"].as_str()).collect();
    assert!(names.contains(&"metrics.k8s.io") && names.contains(&"custom.metrics.k8s.io"), "{names:?}");
}

#[tokio::test]
async fn autoscalers_follow_what_pods_use() {
    let fixture = measured().await;
    let requests = json!({"requests": {"cpu": "100m"}});
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"kubarium.dev/usage-cpu": "steps 200m, 10m at 1m"}},
        "spec": {"containers": [container("c", requests)], "terminationGracePeriodSeconds": 0},
    });
    let web = deployment("web", 1, "", json!({"template": template}));
    fixture.create(&DEPLOYMENTS, NAMESPACE, web).await;
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, autoscaler("web", (1, 4), metric)).await;
    has_size(&fixture, "web", 4).await;
    let words = "New size: 4; reason: cpu resource utilization (percentage of request) above target";
    fixture.told("SuccessfulRescale", words).await;
    let limited = || async {
        let autoscaler = fixture.get(&HORIZONTAL_POD_AUTOSCALERS, "web").await?;
        let reason = condition(&autoscaler, "ScalingLimited")["reason"].clone();
        (reason == "TooManyReplicas").then_some(autoscaler)
    };
    let autoscaler = fixture.eventually("it would have more", limited).await;
    assert_eq!(condition(&autoscaler, "ScalingActive")["reason"], "ValidMetricFound");
    let current = &autoscaler["status"]["currentMetrics"][0]["resource"]["current"];
    assert_eq!(*current, json!({"averageUtilization": 200, "averageValue": "200m"}));
    fixture.pass(Duration::from_secs(90)).await;
    has_size(&fixture, "web", 1).await;
    fixture.told("SuccessfulRescale", "New size: 1; reason: All metrics below target").await;
}

#[tokio::test]
async fn autoscalers_follow_annotations_and_config_maps() {
    let fixture = measured_with(scaling_to_zero()).await;
    for (name, annotations) in [("queue", json!({})), ("rps", json!({"metrics.kubarium.dev/rps": "30"}))] {
        let mut made = deployment(name, 1, "registry.k8s.io/pause:3.10", json!({}));
        made["metadata"]["annotations"] = annotations;
        fixture.create(&DEPLOYMENTS, NAMESPACE, made).await;
    }
    let labels = json!({"kubarium.dev/external-metric": "length", "queue": "a"});
    let value = json!({"metadata": {"name": "length", "labels": labels}, "data": {"value": "30"}});
    fixture.create(&CONFIG_MAPS, NAMESPACE, value).await;
    let selector = json!({"matchLabels": {"queue": "a"}});
    let target = json!({"type": "AverageValue", "averageValue": "10"});
    let length = json!({"name": "length", "selector": selector});
    let external = json!({"type": "External", "external": {"metric": length, "target": target}});
    fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, autoscaler("queue", (0, 5), external)).await;
    let described = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "rps"});
    let target = json!({"type": "Value", "value": "10"});
    let object = json!({"metric": {"name": "rps"}, "describedObject": described, "target": target});
    let object = json!({"type": "Object", "object": object});
    fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, autoscaler("rps", (1, 3), object)).await;
    has_size(&fixture, "queue", 3).await;
    has_size(&fixture, "rps", 3).await;
    fixture.told("SuccessfulRescale", "New size: 3; reason: Deployment metric rps above target").await;
    let above = "New size: 3; reason: external metric length(&LabelSelector{MatchLabels:map[string]string{queue: \
                 a,},MatchExpressions:[]LabelSelectorRequirement{},}) above target";
    fixture.told("SuccessfulRescale", above).await;

    // To sleep, and awake again.
    fixture.patch(&CONFIG_MAPS, "length", json!({"data": {"value": "0"}})).await;
    fixture.pass(Duration::from_secs(20)).await;
    has_size(&fixture, "queue", 0).await;
    let sleeps = || async {
        let autoscaler = fixture.get(&HORIZONTAL_POD_AUTOSCALERS, "queue").await?;
        (condition(&autoscaler, "ScaledToZero")["status"] == "True").then_some(())
    };
    fixture.eventually("it is known why there are none", sleeps).await;
    fixture.patch(&CONFIG_MAPS, "length", json!({"data": {"value": "15"}})).await;
    fixture.pass(Duration::from_secs(20)).await;
    has_size(&fixture, "queue", 2).await;
    fixture.patch(&CONFIG_MAPS, "length", json!({"data": {"value": "much"}})).await;
    fixture.pass(Duration::from_secs(20)).await;
    let failed = fixture.events("FailedGetExternalMetric").await;
    assert!(failed.keys().any(|message| message.contains("\"much\" is no amount")), "{failed:?}");
}

fn scaling_to_zero() -> Config {
    let mut config = Config::new();
    config.apiserver.features.gates.set("HPAScaleToZero", true).unwrap();
    config
}

#[tokio::test]
async fn no_replicas_need_a_gate_and_a_metric_of_their_own() {
    let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
    let cpu = json!({"type": "Resource", "resource": cpu});
    for (config, words) in [
        (Config::new(), "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"),
        (scaling_to_zero(), "spec.metrics: Forbidden: must specify at least one Object or External metric"),
    ] {
        let fixture = Fixture::start_configured(config.components(Components::NONE.controllers(true))).await;
        let refused = autoscaler("web", (0, 3), cpu.clone());
        let refused =
            fixture.client.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, refused).await.unwrap_err();
        assert!(refused.message.contains(words), "{}", refused.message);
    }
}

#[tokio::test]
async fn whoever_uses_more_memory_than_allowed_is_killed() {
    let fixture = measured().await;
    let limits = json!({"limits": {"memory": "64Mi"}});
    let annotations = json!({"kubarium.dev/usage-memory": "ramp 0 128Mi 20s"});
    let pod = json!({"metadata": {"name": "leak", "annotations": annotations},
        "spec": {"containers": [container("c", limits)]}});
    fixture.create(&PODS, NAMESPACE, pod).await;
    runs(&fixture, "leak").await;
    let killed = || async {
        let pod = fixture.get(&PODS, "leak").await?;
        let ended = pod["status"]["containerStatuses"][0]["lastState"]["terminated"].clone();
        ended.is_object().then_some(ended)
    };
    let ended = fixture.eventually("it is killed and started again", killed).await;
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(137), &json!("OOMKilled")));
    let wrong = json!({"metadata": {"annotations": {"kubarium.dev/usage-disk": "1Gi"}}});
    fixture.patch(&PODS, "leak", wrong).await;
    let words = "kubarium.dev/usage-disk is not known; kubarium.dev/usage- may be followed by cpu, memory, \
                 ephemeral-storage, pids, inodes, network-receive, network-transmit, volume";
    fixture.told("InvalidUsage", words).await;
    let nine = "[1,2,3,4,5,6,7,8,9]";
    let dear =
        format!("cel: {nine}.map(a, {nine}.map(b, {nine}.map(c, {nine}.map(d, a * b * c * d)))).size()");
    let dear = json!({"kubarium.dev/usage-disk": null, "kubarium.dev/usage-cpu": dear});
    let dear = json!({"metadata": {"annotations": dear}});
    fixture.patch(&PODS, "leak", dear).await;
    let words = "kubarium.dev/usage-cpu has no value for container c, which counts as 0: operation cancelled: actual \
                 cost limit exceeded";
    fixture.told("InvalidUsage", words).await;
}

#[tokio::test]
async fn annotations_that_change_kill_and_spare() {
    let fixture = measured().await;
    let limits = json!({"limits": {"memory": "64Mi"}});
    let memory = |text: &str| json!({"metadata": {"annotations": {"kubarium.dev/usage-memory": text}}});
    for (name, text) in [("spared", "ramp 0 128Mi 20s"), ("killed", "1Mi")] {
        let mut pod =
            json!({"metadata": {"name": name}, "spec": {"containers": [container("c", limits.clone())]}});
        json_patch::merge(&mut pod, &memory(text));
        fixture.create(&PODS, NAMESPACE, pod).await;
        runs(&fixture, name).await;
    }
    fixture.patch(&PODS, "spared", memory("1Mi")).await;
    fixture.patch(&PODS, "killed", memory("1Gi")).await;
    fixture.pass(Duration::from_secs(30)).await;
    let ended = async |name: &str| {
        let pod = fixture.get(&PODS, name).await.unwrap();
        pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"].clone()
    };
    assert_eq!((ended("spared").await, ended("killed").await), (json!(null), json!("OOMKilled")));
}

#[tokio::test]
async fn whoever_fills_more_of_the_disk_than_allowed_is_evicted() {
    let fixture = measured().await;
    let limits = json!({"limits": {"ephemeral-storage": "1Mi"}});
    let volume = json!({"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}});
    let fills = [
        ("volume", json!({"kubarium.dev/usage-volume.cache": "ramp 0 4Mi 1m"})),
        ("container", json!({"kubarium.dev/usage-ephemeral-storage": "ramp 0 4Mi 1m"})),
        ("neither", json!({"kubarium.dev/usage-ephemeral-storage": "1Mi"})),
        ("writer", json!({})),
    ];
    for (name, annotations) in fills {
        let mut own = container("c", limits.clone());
        if name == "writer" {
            let script = "sleep 30; head -c 1100000 /dev/zero > /cache/f; sleep 3600";
            own["image"] = "busybox".into();
            own["command"] = json!(["sh", "-c", script]);
            own["volumeMounts"] = json!([{"name": "cache", "mountPath": "/cache"}]);
        }
        let spec = json!({"containers": [own], "volumes": [volume]});
        let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
        fixture.create(&PODS, NAMESPACE, pod).await;
        runs(&fixture, name).await;
    }
    for (name, message) in [
        ("volume", "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Mi\". "),
        ("writer", "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Mi\". "),
        ("container", "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "),
    ] {
        let evicted = || async {
            let status = fixture.get(&PODS, name).await?["status"].clone();
            (status["phase"] == "Failed").then_some(status)
        };
        let status = fixture.eventually(&format!("{name} is evicted"), evicted).await;
        assert_eq!((&status["reason"], &status["message"]), (&json!("Evicted"), &json!(message)));
        fixture.told("Evicted", message).await;
    }
    assert_eq!(fixture.get(&PODS, "neither").await.unwrap()["status"]["phase"], "Running");
}

/// What upstream's suites have pods do that are to be evicted (`test/e2e/network/service.go`,
/// `test/e2e/node/pods.go`, `test/e2e_node/eviction_test.go`).
#[tokio::test]
async fn whoever_fills_files_larger_than_any_that_is_held_is_evicted_over_its_limit() {
    let fixture = measured().await;
    let volume = json!({"name": "cache", "emptyDir": {"sizeLimit": "5Mi"}});
    let loops = "i=0; while [ $i -lt 6 ]; do dd if=/dev/urandom of=/cache/f$i bs=1048576 count=1 2>/dev/null; \
        sleep .5; i=$(($i+1)); done; while true; do sleep 5; done";
    let of_volume = "Usage of EmptyDir volume \"cache\" exceeds the limit \"5Mi\". ";
    let of_pod = "Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ";
    let fills = [
        ("below", "fallocate -l 4M file; sleep 10000", ""),
        ("layer", "sleep 10; fallocate -l 10M file; sleep 10000", of_pod),
        ("zeros", "sleep 10; dd if=/dev/zero of=file bs=1M count=10; sleep 10000", of_pod),
        ("volume", "dd if=/dev/zero of=/cache/f bs=1M count=10; sleep 10000", of_volume),
        ("random", loops, of_volume),
    ];
    for (name, script, _) in fills {
        let mut own = container("c", json!({"limits": {"ephemeral-storage": "5Mi"}}));
        own["image"] = "registry.k8s.io/e2e-test-images/agnhost:2.63".into();
        own["command"] = json!(["/bin/sh", "-c", script]);
        own["volumeMounts"] = json!([{"name": "cache", "mountPath": "/cache"}]);
        let spec = json!({"containers": [own], "volumes": [volume]});
        fixture.create(&PODS, NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    for (name, _, message) in fills.into_iter().skip(1) {
        let evicted = || async {
            let status = fixture.get(&PODS, name).await?["status"].clone();
            (status["phase"] == "Failed").then_some(status)
        };
        let status = fixture.eventually(&format!("{name} is evicted"), evicted).await;
        assert_eq!((&status["reason"], &status["message"]), (&json!("Evicted"), &json!(message)), "{name}");
        fixture.told("Evicted", message).await;
    }
    assert_eq!(fixture.get(&PODS, "below").await.unwrap()["status"]["phase"], "Running");
}

#[tokio::test]
async fn load_follows_the_requests_of_a_service_and_is_shared_by_its_pods() {
    use kubarium::apis::core::service::SERVICES;
    let fixture = measured().await;
    let mut web = deployment("web", 1, "registry.k8s.io/pause:3.10", json!({}));
    web["spec"]["template"]["metadata"]["annotations"] = json!({"kubarium.dev/usage-cpu": "requests 10m 5m"});
    let resources = json!({"requests": {"cpu": "100m"}});
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = resources;
    fixture.create(&DEPLOYMENTS, NAMESPACE, web).await;
    let annotations = json!({"kubarium.dev/requests": "60"});
    let spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    let service = json!({"metadata": {"name": "web", "annotations": annotations}, "spec": spec});
    fixture.create(&SERVICES, NAMESPACE, service).await;
    has_size(&fixture, "web", 1).await;
    // 10m and 300m shared: seven pods use 53m each, where 60m are wanted within a tenth.
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}});
    let metric = json!({"type": "Resource", "resource": resource});
    fixture.create(&HORIZONTAL_POD_AUTOSCALERS, NAMESPACE, autoscaler("web", (1, 20), metric)).await;
    let settled = || async {
        let found = fixture.get(&DEPLOYMENTS, "web").await?;
        let ready = found["status"]["readyReplicas"].as_i64().unwrap_or(0);
        (5..=7).contains(&ready).then_some(ready)
    };
    let size = fixture.eventually("as many pods as the requests need", settled).await;
    fixture.pass(Duration::from_secs(120)).await;
    let after = fixture.get(&DEPLOYMENTS, "web").await.unwrap()["spec"]["replicas"].as_i64().unwrap();
    assert!((5..=7).contains(&after), "{size} {after}");
}

/// As its own manifest has it: whoever installs it has what was there before.
#[tokio::test]
async fn a_metrics_server_that_is_installed_serves_what_is_measured() {
    use kubarium::apis::apiregistration::api_service::API_SERVICES;
    use kubarium::apis::core::service::SERVICES;
    const NAME: &str = "v1beta1.metrics.k8s.io";
    let fixture = measured().await;
    let probe = json!({"httpGet": {"path": "/readyz", "port": "https", "scheme": "HTTPS"}});
    let server = json!({"name": "metrics-server", "image": "registry.k8s.io/metrics-server/metrics-server:v0.8.0",
        "args": ["--secure-port=10250"], "ports": [{"name": "https", "containerPort": 10250}], "readinessProbe": probe});
    let metadata = json!({"name": "server", "labels": {"k8s-app": "metrics-server"}});
    fixture.create(&PODS, NAMESPACE, json!({"metadata": metadata, "spec": {"containers": [server]}})).await;
    let ports = [json!({"name": "https", "port": 443, "targetPort": "https"})];
    let spec = json!({"selector": {"k8s-app": "metrics-server"}, "ports": ports});
    fixture.create(&SERVICES, NAMESPACE, json!({"metadata": {"name": "measures"}, "spec": spec})).await;
    runs(&fixture, "server").await;
    let service = json!({"namespace": NAMESPACE, "name": "measures", "port": 443});
    fixture.patch(&API_SERVICES, NAME, json!({"spec": {"service": service}})).await;
    let passed = || async {
        let found = fixture.client.get(&API_SERVICES, "", NAME).await.ok()?.to_value();
        (condition(&found, "Available")["reason"] == "Passed").then_some(())
    };
    fixture.eventually("the new server is available", passed).await;
    fixture.pass(Duration::from_secs(20)).await;
    let list = fixture.client.get_path(POD_METRICS).await.unwrap();
    assert_eq!(list["items"][0]["metadata"]["name"], "server");
    // Nobody but the apiserver says for whom it asks.
    let ask = "wget --no-check-certificate -qO- https://measures/livez; \
               wget --no-check-certificate -O- https://measures/apis/metrics.k8s.io/v1beta1/nodes";
    let asking = json!({"name": "c", "image": "busybox", "command": ["sh", "-c", ask],
        "terminationMessagePolicy": "FallbackToLogsOnError"});
    let spec = json!({"containers": [asking], "restartPolicy": "Never"});
    fixture.create(&PODS, NAMESPACE, json!({"metadata": {"name": "stranger"}, "spec": spec})).await;
    let failed =
        || async { (fixture.get(&PODS, "stranger").await?["status"]["phase"] == "Failed").then_some(()) };
    fixture.eventually("the stranger has asked", failed).await;
    let pod = fixture.get(&PODS, "stranger").await.unwrap();
    let said = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"].as_str().unwrap();
    assert!(said.starts_with("ok") && said.contains("401 Unauthorized"), "{said}");
}
