//! Components and single controllers that are stopped and started, in three faces.

use kubarium::cluster::ComponentPorts;
use kubarium::kinds::{CONFIG_MAPS, DEPLOYMENTS, REPLICA_SETS};
use kubarium::{Client, Cluster, ComponentState, Config, Fault, ListOptions, Listen};
use serde_json::{Value, json};

use super::ask;
use super::settle::web;
use crate::support::wire::Target;
use crate::support::{Up, texts};

const DEPLOYMENT: &str = "kube-controller-manager/deployment";

async fn replica_sets(client: &Client) -> usize {
    client.list(&REPLICA_SETS, "default", &ListOptions::default()).await.unwrap().items.len()
}

fn runs(cluster: &Cluster, name: &str) -> bool {
    let states = cluster.component_states();
    let found: Option<&ComponentState> = states.iter().find(|state| state.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {states:?}")).running
}

/// Neither does what it did, nor keep others from what they do; and it catches up.
#[tokio::test]
async fn a_single_controller_stands_still_and_goes_on() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let client = cluster.client();
    let long = "kube-controller-manager/deployment-controller";
    assert!(runs(&cluster, long));
    for _ in 0..2 {
        cluster.stop_component(DEPLOYMENT).unwrap();
    }
    assert!(!runs(&cluster, long) && runs(&cluster, "kube-controller-manager/replicaset-controller"));
    client.create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(replica_sets(&client).await, 0);
    // Also while its manager comes and goes.
    cluster.stop_component("kube-controller-manager").unwrap();
    assert!(!runs(&cluster, "kube-controller-manager/replicaset-controller"));
    cluster.start_component("kube-controller-manager").unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(replica_sets(&client).await, 0);
    let fork = cluster.fork().await.unwrap();
    for cluster in [&cluster, &fork] {
        assert!(!runs(cluster, long));
        for _ in 0..2 {
            cluster.start_component(long).unwrap();
        }
        cluster.settled().await.unwrap();
        let web = cluster.client().get(&DEPLOYMENTS, "default", "web").await.unwrap().to_value();
        assert_eq!(
            (replica_sets(&cluster.client()).await, &web["status"]["availableReplicas"]),
            (1, &json!(2))
        );
    }
    let unknown = cluster.stop_component("kube-controller-manager/nonsense").unwrap_err();
    assert!(unknown.to_string().contains("kube-controller-manager/deployment"), "{unknown}");
    fork.stop().await;
    cluster.stop().await;
}

/// What is collected is known by the collector alone, which watches every kind with two workers.
#[tokio::test]
async fn every_controller_can_be_stopped_and_started() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let names = || cluster.component_states().into_iter().map(|state| state.name);
    let controllers: Vec<String> = names().filter(|name| name.contains('/')).collect();
    assert!(controllers.len() > 30, "{controllers:?}");
    controllers.iter().for_each(|name| cluster.stop_component(name).unwrap());
    cluster.settled().await.unwrap();
    cluster.client().create(&DEPLOYMENTS, "default", web(1)).await.unwrap();
    controllers.iter().for_each(|name| cluster.start_component(name).unwrap());
    cluster.settled().await.unwrap();
    cluster.client().delete(&DEPLOYMENTS, "default", "web", &Default::default()).await.unwrap();
    while replica_sets(&cluster.client()).await > 0 {
        tokio::task::yield_now().await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_fault_holds_a_controller_and_lets_it_go() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    cluster.faults().add(Fault::stop(DEPLOYMENT).named("held")).unwrap();
    cluster.client().create(&DEPLOYMENTS, "default", web(1)).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(replica_sets(&cluster.client()).await, 0);
    cluster.faults().remove("held").unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(replica_sets(&cluster.client()).await, 1);
    cluster.stop().await;
}

#[tokio::test]
async fn over_http_components_are_listed_stopped_and_started() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    let path = "/kubarium/v1/components";
    let state = async || {
        let (_, listed) = ask(&cluster, "", "GET", path, Value::Null).await;
        let listed = listed["components"].as_array().cloned().unwrap();
        listed.into_iter().find(|one| one["name"] == "kube-scheduler").unwrap()["running"].take()
    };
    assert_eq!(state().await, true);
    for (verb, running) in [("stop", false), ("start", true)] {
        let body = json!({"name": "kube-scheduler"});
        let (code, said) = ask(&cluster, "", "POST", &format!("{path}/{verb}"), body).await;
        assert_eq!((code, said["name"].as_str()), (200, Some("kube-scheduler")), "{said}");
        assert_eq!(state().await, running);
        let (code, said) = ask(&cluster, "", "POST", &format!("{path}/{verb}"), json!({"name": "x"})).await;
        assert!(code == 404 && said["message"].to_string().contains("kubelet/NODE"), "{said}");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn over_http_components_say_what_they_count() {
    let cluster = Cluster::start(Config::new()).await.unwrap();
    cluster.client().create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    cluster.settled().await.unwrap();
    let page = async |page: &str, name: &str| {
        let path = format!("/kubarium/v1/components/{page}?name={name}");
        let answer = cluster.client().raw(http::Request::get(path).body(Default::default()).unwrap()).await;
        let code = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        (code, String::from_utf8(body.to_vec()).unwrap())
    };
    for (name, line) in [
        ("kube-controller-manager", "workqueue_adds_total{name=\"deployment\"} "),
        ("kube-controller-manager", "workqueue_depth{name=\"endpoint_slice\"} 0"),
        ("kube-controller-manager", "node_collector_zone_size{zone=\"\"} "),
        (
            "kube-scheduler",
            "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 2",
        ),
        ("kube-scheduler", "scheduler_pending_pods{queue=\"active\"} 0"),
        (
            "kube-scheduler",
            "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"} 2",
        ),
        ("kube-scheduler", "scheduler_scheduling_algorithm_duration_seconds_count 2"),
        ("kube-scheduler", "scheduler_goroutines{operation=\"binding\"} 0"),
        (
            "kube-scheduler",
            "scheduler_plugin_evaluation_total{extension_point=\"PreFilter\",plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"} 2",
        ),
        (
            "kube-scheduler",
            "scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"NodeName\",profile=\"default-scheduler\"} 2",
        ),
        (
            "kube-scheduler",
            "scheduler_plugin_evaluation_total{extension_point=\"PreFilter\",plugin=\"NodePorts\",profile=\"default-scheduler\"} 0",
        ),
        (
            "kube-scheduler",
            "scheduler_plugin_execution_duration_seconds_count{extension_point=\"Bind\",plugin=\"DefaultBinder\",status=\"Success\"} 1",
        ),
        (
            "kube-scheduler",
            "scheduler_plugin_execution_duration_seconds_count{extension_point=\"Filter\",plugin=\"NodeResourcesFit\",status=\"Success\"} 1",
        ),
        (
            "kube-scheduler",
            "scheduler_event_handling_duration_seconds_count{event=\"UnschedulablePodAdd\"} 2",
        ),
        ("kube-scheduler", "scheduler_event_handling_duration_seconds_count{event=\"NodeAdd\"} 1"),
        ("kube-scheduler", "scheduler_inflight_events{event=\"PodPopped\"} 0"),
        ("kube-controller-manager", "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 0"),
        (
            "kube-scheduler",
            "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"Bind\",profile=\"default-scheduler\",status=\"Success\"} 2",
        ),
        ("kube-scheduler", "rest_client_requests_total{code=\"201\",host="),
        ("kubelet/node-1", "kubelet_node_name{node=\"node-1\"} 1"),
    ] {
        let (code, said) = page("metrics", name).await;
        assert!(code == 200 && said.lines().any(|said| said.starts_with(line)), "{name} {line}: {said}");
    }
    for (component, path, checks) in [
        ("kube-controller-manager", "healthz", &["leaderElection", "deployment-controller"][..]),
        ("kube-scheduler", "healthz", &["leaderElection"]),
        ("kube-scheduler", "livez", &["ping"]),
        ("kube-scheduler", "readyz", &["leaderElection", "sched-handler-sync", "shutdown"]),
        ("kubelet/node-1", "healthz", &["syncloop"]),
    ] {
        assert_eq!(page(path, component).await, (200, "ok".into()), "{component} {path}");
        let (code, said) = page("slis", component).await;
        for check in checks {
            let line = format!("kubernetes_healthcheck{{name={check:?},type={path:?}}} 1\n");
            assert!(code == 200 && said.contains(&line), "{component} {line}: {said}");
        }
    }
    let (code, said) = page("statusz", "kube-scheduler").await;
    assert!(code == 200 && said.starts_with("\nkube-scheduler statusz\nWarning: "), "{said}");
    assert!(page("flagz", "kube-controller-manager").await.1.contains("\nnode-eviction-rate=0.1\n"));
    let (_, said) = page("flagz", "kubelet/node-1").await;
    assert!(said.starts_with("\nkubelet flags\n") && said.contains("\nmax-pods=110\n"), "{said}");
    for (name, key) in [
        ("kube-controller-manager", "\"kubecontrollermanager.config.k8s.io\":"),
        ("kube-scheduler", "\"componentconfig\":"),
        ("kubelet/node-1", "\"kubeletconfig\":"),
    ] {
        let (code, said) = page("configz", name).await;
        assert!(code == 200 && said.contains(key), "{name}: {said}");
    }
    assert_eq!(page("nothing", "kube-scheduler").await.0, 404);
    assert_eq!(page("metrics", "nobody").await.0, 404);
    cluster.stop_component("kube-scheduler").unwrap();
    assert_eq!(page("healthz", "kube-scheduler").await.0, 503);
    cluster.stop().await;
}

#[test]
fn the_command_line_stops_and_starts_components() {
    let up = Up::start_with(&["--nodes", "1"]);
    let (out, err) = texts(&up.kubarium(&["component", "stop", DEPLOYMENT, "kube-scheduler"]));
    assert_eq!(
        (out.as_str(), err.as_str()),
        ("stopped kube-controller-manager/deployment\nstopped kube-scheduler\n", "")
    );
    let (out, _) = texts(&up.kubarium(&["component", "list"]));
    for line in [
        "stopped  kube-scheduler",
        "stopped  kube-controller-manager/deployment-controller",
        "running  kubelet/node-1",
    ] {
        assert!(out.lines().any(|said| said == line), "{line}: {out}");
    }
    let (out, _) = texts(&up.kubarium(&["component", "start", "kube-scheduler"]));
    assert_eq!(out, "started kube-scheduler\n");
    let (_, err) = texts(&up.kubarium(&["component", "stop", "nonsense"]));
    assert!(err.contains("no component is named \"nonsense\""), "{err}");
}

#[tokio::test]
async fn debug_pages_are_for_administrators_and_can_be_switched_off() {
    let cluster = Cluster::start(super::bare()).await.unwrap();
    let index = "/debug/pprof/";
    let (code, page) = ask(&cluster, "", "GET", index, Value::Null).await;
    assert!(code == 200 && page.as_str().unwrap().contains("heap?debug=1"), "{page}");
    for path in [index, "/debug/pprof/cmdline", "/debug/flags/v"] {
        assert_eq!(ask(&cluster, "jane", "GET", path, Value::Null).await.0, 403, "{path}");
    }
    // The log of a test is not the cluster's.
    let (code, why) = ask(&cluster, "", "PUT", "/debug/flags/v", json!(4)).await;
    assert!(code == 400 && why.as_str().unwrap().starts_with("failed set klog.logging.verbosity 4"), "{why}");
    cluster.stop().await;
    let mut config = super::bare();
    config.apiserver.debugging.is_profiled = false;
    let cluster = Cluster::start(config).await.unwrap();
    assert_eq!(ask(&cluster, "", "GET", index, Value::Null).await.0, 404);
    cluster.stop().await;
}

/// By whom it is kept: what caches and the store share counts once.
#[tokio::test]
async fn the_profile_of_the_heap_tells_who_keeps_what() {
    let cluster = Cluster::start(Config::new().nodes(1)).await.unwrap();
    let large = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(300_000)}});
    cluster.client().create(&CONFIG_MAPS, "default", large).await.unwrap();
    cluster.client().list(&CONFIG_MAPS, "default", &ListOptions::default()).await.unwrap();
    cluster.settled().await.unwrap();
    let (code, text) = ask(&cluster, "", "GET", "/debug/pprof/heap?debug=1", Value::Null).await;
    let text = text.as_str().unwrap();
    assert_eq!(code, 200, "{text}");
    let bytes_of = |frames: &str| {
        let head = text[..text.find(frames).unwrap_or_else(|| panic!("{frames}: {text}"))].lines().last();
        head.and_then(|head| head.split([' ', ':']).nth(2)?.parse::<usize>().ok()).unwrap()
    };
    assert!(bytes_of("#\tconfigmaps\n#\twatch cache\n#\tkube-apiserver\n") > 300_000, "{text}");
    for others in ["#\tevents\n#\trecent changes\n#\tetcd\n", "#\tkeys\n#\tetcd\n", "#\tsteps\n#\tflow\n"] {
        assert!((1..300_000_000).contains(&bytes_of(others)), "{others}: {text}");
    }
    let shared = text.contains("#\tconfigmaps\n#\trecent changes\n");
    assert!(!shared || bytes_of("#\tconfigmaps\n#\trecent changes\n") < 300_000, "twice: {text}");
    let (_, text) = ask(&cluster, "", "GET", "/debug/pprof/goroutine?debug=1", Value::Null).await;
    let text = text.as_str().unwrap();
    for task in ["kube-scheduler", "kube-controller-manager", "kubelet/node-1"] {
        assert!(text.contains(&format!("\n#\t{task}\n\n")), "{task}: {text}");
    }
    cluster.stop().await;
}

/// By component, task, request, filter and plugin: each has a part of a Deployment's way.
#[tokio::test]
async fn a_profile_tells_who_takes_the_processors_time() {
    let cluster = Cluster::start(Config::new().nodes(2)).await.unwrap();
    let profiling = cluster.clock().profile().unwrap();
    cluster.client().create(&DEPLOYMENTS, "default", web(2)).await.unwrap();
    cluster.settled().await.unwrap();
    let profile = profiling.end();
    let stacks: Vec<String> = profile
        .shares
        .iter()
        .map(|share| share.stack.iter().map(|name| name.as_str()).collect::<Vec<_>>().join("; "))
        .collect();
    for way in [
        "kube-controller-manager; replicaset controller; ",
        "filters::flow_record::record_request; kubarium_apiserver::filters::",
        "; create pods; ServiceAccount",
        "kube-scheduler: schedule pods; NodeResourcesFit",
        "; create pods/binding",
        "kubelet/node-1",
    ] {
        assert!(stacks.iter().any(|stack| stack.contains(way)), "{way}: {stacks:#?}");
    }
    let request =
        http::Request::get("/debug/pprof/profile?seconds=1").body(axum::body::Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(cluster.service(), request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert_eq!(body[..2], [0x1f, 0x8b], "as pprof takes it");
    cluster.stop().await;
}

/// Whoever asks at them is known to the apiserver, or reads no more than whether they are well.
#[tokio::test]
async fn components_have_pages_at_ports_of_their_own() {
    let mut ports = ComponentPorts::default();
    ports.scheduler_secure_port = Some(([127, 0, 0, 1], 0).into());
    ports.controller_manager_secure_port = Some(([127, 0, 0, 1], 0).into());
    let config = Config::new().nodes(0).listen(Listen::loopback()).component_ports(ports);
    let cluster = Cluster::start(config).await.unwrap();
    let access = cluster.access().unwrap();
    let authority = access.authority_pem.unwrap();
    let identity = access.identity.unwrap();
    let identity = [identity.certificate_pem.into_bytes(), identity.key_pem.into_bytes()];
    let at = cluster.component_addresses();
    let names: Vec<&str> = at.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["kube-controller-manager", "kube-scheduler"]);
    for ((name, address), counted) in at.iter().zip(["workqueue_depth", "scheduler_"]) {
        let server = format!("https://{address}");
        let mut stranger = Target::new(&server, authority.as_bytes(), None).http1().await.unwrap();
        assert_eq!(stranger.get("/healthz").await.unwrap().json(), "ok");
        for page in ["/metrics", "/debug/pprof/", "/nothing"] {
            let refused = stranger.get(page).await.unwrap();
            let text = format!("forbidden: User \"system:anonymous\" cannot get path \"{page}\"");
            assert_eq!((refused.code, &refused.json()["message"]), (403, &text.into()), "{page}");
        }
        let administrator = Target::new(&server, authority.as_bytes(), Some(identity.clone()));
        let mut administrator = administrator.http1().await.unwrap();
        let metrics = administrator.get("/metrics").await.unwrap();
        assert!(String::from_utf8_lossy(&metrics.body).contains(counted), "{metrics:?}");
        for (page, words) in [
            ("/configz", "{"),
            (
                "/metrics/slis",
                "kubernetes_healthchecks_total{name=\"leaderElection\",status=\"success\",type=\"healthz\"} 1\n",
            ),
            ("/statusz", name),
            ("/flagz", name),
            ("/debug/pprof/", "<title>/debug/pprof/</title>"),
            ("/debug/pprof/goroutine?debug=1", "goroutine profile: total "),
            ("/debug/flags", "full flags configurable"),
        ] {
            let told = administrator.get(page).await.unwrap();
            let text = String::from_utf8_lossy(&told.body);
            assert!(told.code == 200 && text.contains(words), "{name}{page}: {} {text}", told.code);
        }
        assert_eq!(administrator.get("/debug/pprof").await.unwrap().code, 302);
        assert_eq!(administrator.get("/nothing").await.unwrap().code, 404);
    }
    let fork = cluster.fork().await.unwrap();
    assert!(fork.component_addresses().is_empty());
    fork.stop().await;
    cluster.stop().await;
}
