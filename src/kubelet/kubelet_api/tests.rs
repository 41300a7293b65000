//! What is said of pods that run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{PodHere, RunningHere};
use super::usage::MeasuredPod;
use super::{cadvisor, metrics, pods, summary};
use crate::container_runtime::stats::{ContainerStats, CpuThrottling, PodSandboxStats};
use crate::node_config::NodeConfig;
use apimachinery::object::Object;
use apimachinery::time::Time;

fn here() -> Vec<PodHere> {
    let pod = json!({"metadata": {"name": "web", "namespace": "ns", "uid": "u"}, "spec": {"containers": [
        {"name": "c", "image": "nginx", "resources": {"limits": {"cpu": "250m"}}}]}});
    let object = Arc::new(Object::from_value(&pod, vec![]).unwrap());
    let (name, image) = ("c".to_owned(), "nginx".to_owned());
    let container = RunningHere { name, image, attempt: 0, started_at: Time::UNIX_EPOCH };
    let (start_time, pod) = (Time::UNIX_EPOCH, object.view());
    let done = PodHere { object: object.clone(), pod, start_time, running: vec![], ended: 1 };
    let pod = object.view();
    vec![PodHere { object, pod, start_time, running: vec![container], ended: 0 }, done]
}

fn measured() -> Vec<MeasuredPod> {
    let here = here().swap_remove(0);
    let container = ContainerStats {
        cpu_nano_cores: 250_000_000,
        cpu_core_nanoseconds: 1_500_000_000,
        memory_bytes: 4096,
        disk_bytes: 7,
    };
    let sandbox = PodSandboxStats { received_bytes: 10, sent_bytes: 20 };
    vec![MeasuredPod { here, containers: vec![container], sandbox }]
}

#[test]
fn pods_are_listed_and_measured() {
    let here = here();
    let list: Value = serde_json::from_str(&pods::list(&here)).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("PodList"), 2));
    let running: Value = serde_json::from_str(&pods::running(&here)).unwrap();
    assert_eq!(running["items"][0]["spec"]["containers"][0]["image"], "nginx");
    assert_eq!(running["items"].as_array().unwrap().len(), 1);
    let measured = measured();
    let resource = metrics::resource(&measured, (Duration::from_secs(10), Time::UNIX_EPOCH));
    let labels = r#"{container="c",namespace="ns",pod="web"}"#;
    for line in [
        format!("container_cpu_usage_seconds_total{labels} 1.5 0"),
        format!("container_start_time_seconds{labels} 0"),
        r#"pod_memory_working_set_bytes{namespace="ns",pod="web"} 4096 0"#.to_owned(),
        "node_cpu_usage_seconds_total 2 0".to_owned(),
        "resource_scrape_error 0".to_owned(),
    ] {
        assert!(resource.lines().any(|own| own == line), "{line}\n{resource}");
    }
    let own = metrics::own("n", &here);
    assert!(own.contains("kubelet_running_containers{container_state=\"exited\"} 1\n"), "{own}");
    assert!(own.contains("kubelet_running_pods 1\n"), "{own}");
    let config = NodeConfig::numbered(1);
    let throttling =
        CpuThrottling { periods: 60, throttled_periods: 20, throttled_nanoseconds: 1_500_000_000 };
    let cadvisor = cadvisor::cadvisor(&config, &measured, &[vec![Some(throttling)]]);
    let sent = r#"container_network_transmit_bytes_total{interface="eth0",namespace="ns",pod="web"} 20"#;
    assert!(cadvisor.lines().any(|line| line == sent), "{cadvisor}");
    assert!(cadvisor.contains("machine_memory_bytes 34359738368\n"), "{cadvisor}");
    let labels = r#"{container="c",image="nginx",namespace="ns",pod="web"}"#;
    for sample in [
        ("container_cpu_cfs_periods_total", "60"),
        ("container_cpu_cfs_throttled_periods_total", "20"),
        ("container_cpu_cfs_throttled_seconds_total", "1.5"),
        ("container_memory_rss", "4096"),
        ("container_spec_cpu_quota", "25000"),
        ("container_spec_cpu_shares", "256"),
        ("container_spec_memory_limit_bytes", "0"),
    ] {
        let line = format!("{}{labels} {}", sample.0, sample.1);
        assert!(cadvisor.lines().any(|told| told == line), "{line}\n{cadvisor}");
    }
    let summary = summary::summary("n", (&measured, &[]), &config, (Time::UNIX_EPOCH, Time::UNIX_EPOCH));
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["pods"][0]["podRef"], json!({"name": "web", "namespace": "ns", "uid": "u"}));
    assert_eq!(summary["node"]["nodeName"], "n");
    assert_eq!(summary["pods"][0]["containers"][0]["cpu"]["usageNanoCores"], 250_000_000);
    assert_eq!(summary["node"]["memory"]["workingSetBytes"], (512 << 20) + 4096);
}
