//! What is said of pods that run.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{PodHere, RunningHere};
use super::{configuration, metrics, pods, summary};
use crate::node_config::NodeConfig;
use apimachinery::object::Object;
use apimachinery::time::Time;

fn here() -> Vec<PodHere> {
    let pod = json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": {"containers": []}});
    let object = Arc::new(Object::from_value(&pod, vec![]).unwrap());
    let container = RunningHere { name: "c".into(), image: "nginx".into(), started_at: Time::UNIX_EPOCH };
    let start_time = Time::UNIX_EPOCH;
    let done = PodHere { object: object.clone(), start_time, running: vec![], ended: 1 };
    vec![PodHere { object, start_time, running: vec![container], ended: 0 }, done]
}

#[test]
fn pods_are_listed_and_measured() {
    let here = here();
    let list: Value = serde_json::from_str(&pods::list(&here)).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("PodList"), 2));
    let running: Value = serde_json::from_str(&pods::running(&here)).unwrap();
    assert_eq!(running["items"][0]["spec"]["containers"][0]["image"], "nginx");
    assert_eq!(running["items"].as_array().unwrap().len(), 1);
    let resource = metrics::resource(&here, Time::UNIX_EPOCH);
    let labels = r#"{container="c",namespace="ns",pod="web"}"#;
    for line in [
        format!("container_cpu_usage_seconds_total{labels} 0 0"),
        format!("container_start_time_seconds{labels} 0"),
        r#"pod_memory_working_set_bytes{namespace="ns",pod="web"} 0 0"#.to_owned(),
        "resource_scrape_error 0".to_owned(),
    ] {
        assert!(resource.lines().any(|own| own == line), "{line}\n{resource}");
    }
    let own = metrics::own("n", &here);
    assert!(own.contains("kubelet_running_containers{container_state=\"exited\"} 1\n"), "{own}");
    assert!(own.contains("kubelet_running_pods 1\n"), "{own}");
    let config = NodeConfig::numbered(1);
    let cadvisor = metrics::cadvisor(&config, &here);
    assert!(cadvisor.contains("machine_memory_bytes 34359738368\n"), "{cadvisor}");
    let summary = summary::summary("n", &here, (Time::UNIX_EPOCH, Time::UNIX_EPOCH));
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["pods"][0]["podRef"], json!({"name": "web", "namespace": "ns", "uid": "u"}));
    assert_eq!(summary["node"]["nodeName"], "n");
    let config: Value = serde_json::from_str(&configuration(&config)).unwrap();
    assert_eq!(config["kubeletconfig"]["maxPods"], 110);
}
