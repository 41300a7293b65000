//! What people try devices with who come from dra-example-driver: claims alone and shared, configured, chosen by
//! expressions, second best, for administrators, by the names of extended resources. Containers are told by
//! variables what they got.

use std::collections::BTreeMap;
use std::time::Duration;

use http_body_util::BodyExt;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::kind::Kind;
use kubarium::apis::resource::device_class::DEVICE_CLASSES;
use kubarium::apis::resource::resource_claim::{RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};
use kubarium::cluster::Settle;
use kubarium::kubelet::node_group::NodeGroup;
use kubarium::{Clock, Cluster, Config, Entropy, ListOptions};
use serde::Deserialize;
use serde_json::Value;

/// As that driver publishes them when nobody says otherwise.
const NODE: &str = "nodes: [{name: gpus, devices: [{driver: gpu.example.com, name: gpu, count: 8, \
    attributes: {model: LATEST-GPU-MODEL, driverVersion: {version: 1.0.0}}, capacity: {memory: 80Gi}}]}]";

const CLASS: &str = "
kind: DeviceClass
metadata: {name: gpu.example.com}
spec:
  selectors: [{cel: {expression: \"device.driver == 'gpu.example.com'\"}}]
  extendedResourceName: example.com/gpu
";

async fn start() -> Cluster {
    let clock = Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let config = Config::new().nodes(0).node_groups(NodeGroup::read(NODE).unwrap());
    let cluster = Cluster::start(config.clock(clock).entropy(Entropy::seeded(7))).await.unwrap();
    apply(&cluster, CLASS).await;
    cluster
}

/// Creates what is there, and waits until all has happened that follows from it.
async fn apply(cluster: &Cluster, manifests: &str) {
    for document in serde_yaml::Deserializer::from_str(manifests) {
        let object = Value::deserialize(document).unwrap();
        let kind: &Kind = match object["kind"].as_str().unwrap() {
            "DeviceClass" => &DEVICE_CLASSES,
            "Namespace" => &NAMESPACES,
            "Pod" => &PODS,
            "ResourceClaim" => &RESOURCE_CLAIMS,
            "ResourceClaimTemplate" => &RESOURCE_CLAIM_TEMPLATES,
            other => panic!("{other}"),
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let namespace = if kind.namespaced { namespace } else { String::new() };
        cluster.client().create(kind, &namespace, object).await.unwrap();
    }
    cluster.settle(Settle::new()).await.unwrap();
    // What is allocated together is looked at again a moment later.
    cluster.pass(Duration::from_secs(2)).await.unwrap();
    cluster.settle(Settle::new()).await.unwrap();
}

/// A pod whose containers say what is around them, and stay; each has the claims that are given.
fn pod(name: &str, containers: &[(&str, &str)], claims: &str) -> String {
    let container = |(name, own): &(&str, &str)| {
        format!(
            "  - {{name: {name}, image: ubuntu, command: [bash, -c], \
             args: [\"export; trap 'exit 0' TERM; sleep 9999 & wait\"], resources: {own}}}\n"
        )
    };
    let containers: String = containers.iter().map(container).collect();
    format!(
        "---\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n{containers}  resourceClaims: {claims}\n"
    )
}

/// A template of one request, of which more may be said.
fn template(name: &str, requests: &str) -> String {
    format!(
        "---\nkind: ResourceClaimTemplate\nmetadata: {{name: {name}}}\nspec: {{spec: {{devices: {requests}}}}}\n"
    )
}

const ONE: &str = "{requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}";

/// The devices that a container was told of, by their variables.
async fn told(cluster: &Cluster, pod: &str, container: &str) -> BTreeMap<String, String> {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log?container={container}");
    let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let variable = |line: &str| {
        let (name, value) = line.rsplit(' ').next()?.split_once('=')?;
        let is_told = name.starts_with("GPU_DEVICE") || name.starts_with("DRA_");
        is_told.then(|| (name.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
    };
    text.lines().filter_map(variable).collect()
}

/// Only which devices.
async fn devices(cluster: &Cluster, pod: &str, container: &str) -> Vec<String> {
    let told = told(cluster, pod, container).await;
    let is_device = |name: &String| name.trim_start_matches("GPU_DEVICE_").parse::<u32>().is_ok();
    told.into_iter().filter(|(name, _)| is_device(name)).map(|(_, device)| device).collect()
}

#[tokio::test]
async fn claims_are_had_alone_or_shared() {
    let cluster = start().await;
    let by_template = "[{name: g, resourceClaimTemplateName: one}]";
    let own = ("c", "{claims: [{name: g}]}");
    let mut all = template("one", ONE);
    all += &pod("first", &[own], by_template);
    all += &pod("second", &[own], by_template);
    all += &pod("shared", &[("a", own.1), ("b", own.1)], by_template);
    let two = "{requests: [{name: x, exactly: {deviceClassName: gpu.example.com}}, \
        {name: y, exactly: {deviceClassName: gpu.example.com}}]}";
    all += &template("two", two);
    all += &pod("both", &[own], "[{name: g, resourceClaimTemplateName: two}]");
    all += &format!("---\nkind: ResourceClaim\nmetadata: {{name: common}}\nspec: {{devices: {ONE}}}\n");
    let by_name = "[{name: g, resourceClaimName: common}]";
    all += &pod("left", &[own], by_name);
    all += &pod("right", &[own], by_name);
    apply(&cluster, &all).await;

    let of = async |pod: &str, container: &str| devices(&cluster, pod, container).await;
    let (first, second, both) = (of("first", "c").await, of("second", "c").await, of("both", "c").await);
    let (shared, common) = (of("shared", "a").await, of("left", "c").await);
    assert_eq!([first.len(), second.len(), both.len(), shared.len(), common.len()], [1, 1, 2, 1, 1]);
    assert_eq!(of("shared", "b").await, shared);
    assert_eq!(of("right", "c").await, common);
    let mut distinct: Vec<&String> =
        [&first, &second, &both, &shared, &common].into_iter().flatten().collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "nobody else has any of these: {distinct:?}");
    let claim = cluster.client().get(&RESOURCE_CLAIMS, "default", "common").await.unwrap().to_value();
    assert_eq!(claim["status"]["reservedFor"].as_array().unwrap().len(), 2);
    let told = told(&cluster, "first", "c").await;
    assert_eq!((told["DRA_ADMIN_ACCESS"].as_str(), told.len()), ("false", 5), "{told:?}");
    cluster.stop().await;
}

#[tokio::test]
async fn requests_are_configured_each_for_itself() {
    let cluster = start().await;
    let parameters = |sharing: &str| {
        format!(
            "opaque: {{driver: gpu.example.com, parameters: {{apiVersion: gpu.resource.example.com/v1alpha1, \
             kind: GpuConfig, sharing: {sharing}}}}}"
        )
    };
    let long = parameters("{strategy: TimeSlicing, timeSlicingConfig: {interval: Long}}");
    let ten = parameters("{strategy: SpacePartitioning, spacePartitioningConfig: {partitionCount: 10}}");
    let devices = format!(
        "{{requests: [{{name: ts, exactly: {{deviceClassName: gpu.example.com}}}}, \
         {{name: sp, exactly: {{deviceClassName: gpu.example.com}}}}], \
         config: [{{requests: [ts], {long}}}, {{requests: [sp], {ten}}}]}}"
    );
    let containers = [
        ("ts-0", "{claims: [{name: g, request: ts}]}"),
        ("ts-1", "{claims: [{name: g, request: ts}]}"),
        ("sp-0", "{claims: [{name: g, request: sp}]}"),
    ];
    let pod = pod("p", &containers, "[{name: g, resourceClaimTemplateName: configured}]");
    apply(&cluster, &(template("configured", &devices) + &pod)).await;
    let lines = async |container: &str| {
        let told = told(&cluster, "p", container).await;
        let is_said = |name: &String| !name.ends_with("RESOURCE_CLAIM") && !name.starts_with("DRA_");
        let told = told.into_iter().filter(|(name, _)| is_said(name));
        told.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    let slices = [
        "GPU_DEVICE_0=gpu-0",
        "GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing",
        "GPU_DEVICE_0_TIMESLICE_INTERVAL=Long",
    ];
    assert_eq!(lines("ts-0").await, slices);
    assert_eq!(lines("ts-1").await, slices);
    let spaces = [
        "GPU_DEVICE_1=gpu-1",
        "GPU_DEVICE_1_PARTITION_COUNT=10",
        "GPU_DEVICE_1_SHARING_STRATEGY=SpacePartitioning",
    ];
    assert_eq!(lines("sp-0").await, spaces);
    cluster.stop().await;
}

#[tokio::test]
async fn devices_are_chosen_by_expressions_and_the_second_best_is_taken() {
    let cluster = start().await;
    let with = |expressions: &[&str]| {
        let selectors: Vec<String> =
            expressions.iter().map(|one| format!("{{cel: {{expression: \"{one}\"}}}}")).collect();
        format!("deviceClassName: gpu.example.com, selectors: [{}]", selectors.join(", "))
    };
    let model = "device.attributes['gpu.example.com'].model == 'LATEST-GPU-MODEL'";
    let large = "device.capacity['gpu.example.com'].memory.compareTo(quantity('4Gi')) >= 0";
    let huge = "device.capacity['gpu.example.com'].memory.compareTo(quantity('1Ti')) >= 0";
    let chosen = format!("{{requests: [{{name: gpu, exactly: {{{}}}}}]}}", with(&[model, large]));
    let first_of = |first: &str| {
        format!(
            "{{requests: [{{name: gpu, firstAvailable: [{{name: best, {}}}, \
             {{name: older, deviceClassName: gpu.example.com}}]}}]}}",
            with(&[first])
        )
    };
    let mut all = template("chosen", &chosen) + &template("huge", &first_of(huge));
    all += &template("model", &first_of(model));
    for name in ["chosen", "huge", "model"] {
        let claims = format!("[{{name: g, resourceClaimTemplateName: {name}}}]");
        all += &pod(name, &[("c", "{claims: [{name: g}]}")], &claims);
    }
    apply(&cluster, &all).await;
    for name in ["chosen", "huge", "model"] {
        assert_eq!(devices(&cluster, name, "c").await.len(), 1, "{name}");
    }
    let claims = cluster.client().list(&RESOURCE_CLAIMS, "default", &ListOptions::default()).await.unwrap();
    let request = |pod: &str| {
        let claims = claims.items.iter().map(|claim| claim.to_value());
        let own = claims.filter(|claim| claim["metadata"]["ownerReferences"][0]["name"] == pod);
        let requests =
            own.map(|claim| claim["status"]["allocation"]["devices"]["results"][0]["request"].clone());
        requests.map(|request| request.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([request("huge"), request("model")], [["gpu/older"], ["gpu/best"]]);
    cluster.stop().await;
}

#[tokio::test]
async fn administrators_reach_devices_that_others_have_and_init_containers_come_first() {
    let cluster = start().await;
    let label = "---\nkind: Namespace\nmetadata: {name: admin, labels: {resource.kubernetes.io/admin-access: \"true\"}}\n";
    let admin = "{requests: [{name: all, exactly: {deviceClassName: gpu.example.com, allocationMode: All, \
        adminAccess: true}}]}";
    let by_template = "[{name: g, resourceClaimTemplateName: one}]";
    let own = "{claims: [{name: g}]}";
    let with_init = pod("with-init", &[("c", own)], by_template).replace(
        "  resourceClaims:",
        &format!("  initContainers: [{{name: i, image: ubuntu, command: [bash, -c, export], resources: {own}}}]\n  resourceClaims:"),
    );
    apply(&cluster, &(template("one", ONE) + &with_init)).await;
    let before = devices(&cluster, "with-init", "i").await;
    assert_eq!(before.len(), 1);
    assert_eq!(devices(&cluster, "with-init", "c").await, before);

    let in_admin = |text: String| text.replacen("metadata: {", "metadata: {namespace: admin, ", 1);
    let claims = "[{name: g, resourceClaimTemplateName: all}]";
    let all =
        label.to_owned() + &in_admin(template("all", admin)) + &in_admin(pod("p", &[("c", own)], claims));
    apply(&cluster, &all).await;
    let pod = cluster.client().get(&PODS, "admin", "p").await.unwrap().to_value();
    assert_eq!(pod["status"]["phase"], "Running", "{pod}");
    let claims = cluster.client().list(&RESOURCE_CLAIMS, "admin", &ListOptions::default()).await.unwrap();
    let results = claims.items[0].to_value()["status"]["allocation"]["devices"]["results"].take();
    let results = results.as_array().unwrap();
    assert_eq!(results.len(), 8);
    assert!(results.iter().all(|result| result["adminAccess"] == true), "{results:?}");
    cluster.stop().await;
}

#[tokio::test]
async fn pods_by_extended_resources_run_when_nothing_moves_any_more() {
    let cluster = start().await;
    for name in ["first", "second"] {
        let own = pod(name, &[("c", "{limits: {example.com/gpu: \"1\"}}")], "[]");
        let object: Value = serde_yaml::from_str(own.trim_start_matches("---\n")).unwrap();
        cluster.client().create(&PODS, "default", object).await.unwrap();
    }
    cluster.settle(Settle::new()).await.unwrap();
    for name in ["first", "second"] {
        let pod = cluster.client().get(&PODS, "default", name).await.unwrap().to_value();
        assert_eq!(pod["spec"]["nodeName"], "gpus", "{pod}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn extended_resources_are_devices_by_both_names() {
    let cluster = start().await;
    let mut all = String::new();
    for (name, resource) in
        [("implicit", "deviceclass.resource.kubernetes.io/gpu.example.com"), ("explicit", "example.com/gpu")]
    {
        all += &pod(name, &[("c", &format!("{{limits: {{{resource}: \"1\"}}}}")), ("none", "{}")], "[]");
    }
    apply(&cluster, &all).await;
    let (implicit, explicit) =
        (devices(&cluster, "implicit", "c").await, devices(&cluster, "explicit", "c").await);
    let pod = cluster.client().get(&PODS, "default", "implicit").await.unwrap().to_value();
    let events =
        cluster.client().list(&kubarium::kinds::EVENTS, "default", &ListOptions::default()).await.unwrap();
    let events: Vec<Value> = events.items.iter().map(|event| event.to_value()["message"].clone()).collect();
    assert_eq!((implicit.len(), explicit.len()), (1, 1), "{} {events:?}", pod["status"]);
    assert_ne!(implicit, explicit);
    assert!(devices(&cluster, "implicit", "none").await.is_empty());
    cluster.stop().await;
}
