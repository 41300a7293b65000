//! A hundred autoscalers: what one sync of all of them costs.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::server::{Server, milliseconds, runtime};
use crate::support::wire::{Error, Target};
use crate::table::Row;

const TARGETS: usize = 100;
/// Of `--horizontal-pod-autoscaler-sync-period`: shorter than upstream's, since in fifteen seconds what a cluster
/// does at rest differs from time to time by more than a sync takes.
const PERIOD: Duration = Duration::from_secs(1);
/// The first syncs write what they find, and wait until all pods have numbers.
const FIRST_SYNCS: Duration = Duration::from_secs(35);
/// So many periods are measured together.
const ROUNDS: u32 = 30;

/// Processor time of one sync of a hundred autoscalers, each of a Deployment with one pod, beside what the
/// cluster needs without them.
pub(crate) fn measure() -> Vec<Row> {
    let period = format!("{}s", PERIOD.as_secs());
    let server = Server::start_with(2, &["--horizontal-pod-autoscaler-sync-period", &period]);
    let runtime = runtime();
    runtime.block_on(create(&server.target, "deployments", "apps/v1", deployment)).unwrap();
    server.wait_until_quiet();
    let idle = cost(&server);
    let group = "autoscaling/v2";
    runtime.block_on(create(&server.target, "horizontalpodautoscalers", group, autoscaler)).unwrap();
    std::thread::sleep(FIRST_SYNCS);
    let busy = cost(&server);
    vec![Row::new("one sync of 100 HorizontalPodAutoscalers, CPU", busy - idle, "ms").budget(5.0)]
}

/// Milliseconds of processor time in a period.
fn cost(server: &Server) -> f64 {
    let before = server.cpu();
    std::thread::sleep(PERIOD * ROUNDS);
    milliseconds(server.cpu() - before) / f64::from(ROUNDS)
}

async fn create(target: &Target, plural: &str, group: &str, made: fn(&str) -> Value) -> Result<(), Error> {
    let mut wire = target.http1().await?;
    for number in 0..TARGETS {
        let mut tree = made(&format!("web-{number}"));
        tree["apiVersion"] = group.into();
        let path = format!("/apis/{group}/namespaces/default/{plural}");
        let created = wire.send(Method::POST, &path, &tree).await?;
        assert_eq!(created.code, 201, "{}", created.json());
    }
    Ok(())
}

fn deployment(name: &str) -> Value {
    let container = json!({"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "10m"}}});
    json!({
        "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [container]},
        }},
    })
}

fn autoscaler(name: &str) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    json!({
        "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": resource}]},
    })
}
