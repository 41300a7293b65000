//! A real Prometheus, which reads the metrics of everything: the apiserver, the components, the kubelets and their
//! containers, and a pod.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kubarium::cluster::ComponentPorts;
use kubarium::kinds::PODS;
use kubarium::{Cluster, Config, Listen};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::handles::ask;
use crate::support::programs::{self, free_address};
use crate::support::{PATIENCE, plain};

/// Where the metrics of a cluster are: the name of each job, its path, and whether components are asked, or the
/// apiserver. Debian's Prometheus is built without finding them by the API itself.
const JOBS: &[(&str, &str, bool)] = &[
    ("kubernetes-apiservers", "/metrics", false),
    ("apiserver-slis", "/metrics/slis", false),
    ("components", "/metrics", true),
    ("component-slis", "/metrics/slis", true),
    ("kubernetes-nodes-1", "/api/v1/nodes/node-1/proxy/metrics", false),
    ("kubernetes-nodes-2", "/api/v1/nodes/node-2/proxy/metrics", false),
    ("kubernetes-nodes-cadvisor-1", "/api/v1/nodes/node-1/proxy/metrics/cadvisor", false),
    ("kubernetes-nodes-cadvisor-2", "/api/v1/nodes/node-2/proxy/metrics/cadvisor", false),
    ("kubernetes-nodes-resource-1", "/api/v1/nodes/node-1/proxy/metrics/resource", false),
    ("kubernetes-nodes-resource-2", "/api/v1/nodes/node-2/proxy/metrics/resource", false),
    ("kubernetes-nodes-probes-1", "/api/v1/nodes/node-1/proxy/metrics/probes", false),
    ("kubernetes-nodes-probes-2", "/api/v1/nodes/node-2/proxy/metrics/probes", false),
    ("kubernetes-pods", "/api/v1/namespaces/default/pods/shop:8080/proxy/metrics", false),
];

/// What each question has to be answered with: so many series, each of which is more than nothing.
const ASKED: &[(&str, usize)] = &[
    ("up", 15),
    ("sum(apiserver_request_total{verb=\"LIST\", resource=\"pods\"})", 1),
    ("histogram_quantile(0.9, sum(apiserver_request_duration_seconds_bucket{verb=\"POST\"}) by (le))", 1),
    ("sum(workqueue_adds_total)", 1),
    ("sum(scheduler_schedule_attempts_total{result=\"scheduled\"})", 1),
    ("sum(kubelet_running_pods)", 1),
    ("container_memory_working_set_bytes{pod=\"web\", container=\"web\", image=\"nginx\"}", 1),
    ("node_memory_working_set_bytes", 2),
    ("kubernetes_healthcheck{name=\"ping\", job=\"apiserver-slis\", type=\"readyz\"}", 1),
    ("prober_probe_total{pod=\"web\", probe_type=\"Readiness\", result=\"successful\"}", 1),
    ("orders_total{shop=\"cakes\"}", 1),
];

/// A Prometheus of its own; killed when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    fn start(folder: TempDir) -> Prometheus {
        let address = free_address();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(programs::of_debian("prometheus", "prometheus"))
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Prometheus { child, address, folder }
    }

    /// What is answered below `data`, or why there is nothing.
    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, String> {
        let query: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", percent_encode(value.as_bytes(), NON_ALPHANUMERIC)))
            .collect();
        let line = format!("GET /api/v1/{path}?{}", query.join("&"));
        let (_, answer) = plain::ask(self.address, &line, &[], "").await.map_err(|why| why.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|why| format!("{why}: {answer}"))?;
        if answer["status"] == "success" { Ok(answer["data"].clone()) } else { Err(answer.to_string()) }
    }

    /// Asks until there are as many answers as wanted, none of which is zero.
    async fn tells(&self, query: &str, series: usize) {
        let start = tokio::time::Instant::now();
        loop {
            let answer = self.ask("query", &[("query", query)]).await;
            let values: Vec<f64> = answer.iter().flat_map(|data| values(&data["result"])).collect();
            if values.len() == series && values.iter().all(|value| *value > 0.0) {
                return;
            }
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let targets = self.ask("targets", &[("state", "active")]).await;
            assert!(start.elapsed() < PATIENCE, "{query}: {answer:?}\n{targets:?}\n{log}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn values(result: &Value) -> impl Iterator<Item = f64> {
    let series = result.as_array().into_iter().flatten();
    series.filter_map(|one| one["value"][1].as_str()?.parse().ok())
}

/// A pod that is ready by a probe, and one whose own metrics are to be read.
fn pods() -> [Value; 2] {
    let probe = json!({"httpGet": {"path": "/", "port": 80}, "periodSeconds": 1});
    let web =
        json!({"name": "web", "image": "nginx", "ports": [{"containerPort": 80}], "readinessProbe": probe});
    let told =
        "[{path: /metrics, body: \"# TYPE orders_total counter\\norders_total{shop=\\\"cakes\\\"} 3\\n\"}]";
    let annotations = json!({"prometheus.io/scrape": "true", "kubarium.dev/http.8080": told});
    let shop = json!({"name": "shop", "image": "shop", "ports": [{"containerPort": 8080}]});
    [
        json!({"metadata": {"name": "web"}, "spec": {"containers": [web]}}),
        json!({"metadata": {"name": "shop", "annotations": annotations}, "spec": {"containers": [shop]}}),
    ]
}

fn write_configuration(cluster: &Cluster, folder: &Path) {
    let access = cluster.access().unwrap();
    let server = access.server.strip_prefix("https://").unwrap().to_owned();
    let components: Vec<String> =
        cluster.component_addresses().iter().map(|(_, at)| at.to_string()).collect();
    let identity = access.identity.unwrap();
    let files = [
        ("ca_file", access.authority_pem.unwrap()),
        ("cert_file", identity.certificate_pem),
        ("key_file", identity.key_pem),
    ];
    let mut tls = json!({});
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
        tls[name] = json!(folder.join(name));
    }
    let jobs = JOBS.iter().map(|(job, path, is_of_components)| {
        let targets = if *is_of_components { components.clone() } else { vec![server.clone()] };
        json!({"job_name": job, "metrics_path": path, "scheme": "https", "tls_config": tls,
            "static_configs": [{"targets": targets}]})
    });
    let jobs: Vec<Value> = jobs.collect();
    let configuration = json!({"global": {"scrape_interval": "250ms"}, "scrape_configs": jobs});
    fs::write(folder.join("prometheus.yml"), configuration.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prometheus_reads_the_metrics_of_everything() {
    let mut ports = ComponentPorts::default();
    ports.scheduler_secure_port = Some(([127, 0, 0, 1], 0).into());
    ports.controller_manager_secure_port = Some(([127, 0, 0, 1], 0).into());
    let config = Config::new().nodes(2).listen(Listen::loopback()).component_ports(ports);
    let cluster = Cluster::start(config).await.unwrap();
    for pod in pods() {
        cluster.client().create(&PODS, "default", pod).await.unwrap();
    }
    assert_eq!(ask(&cluster, "", "GET", "/readyz", Value::Null).await.0, 200);
    let folder = tempfile::tempdir().unwrap();
    write_configuration(&cluster, folder.path());
    let prometheus = Prometheus::start(folder);
    for (query, series) in ASKED {
        prometheus.tells(query, *series).await;
    }
    // Nothing was read that it would not take: a sample twice, or in a wrong order.
    let targets = prometheus.ask("targets", &[("state", "active")]).await.unwrap();
    for target in targets["activeTargets"].as_array().unwrap() {
        assert_eq!(target["lastError"], "", "{target}");
    }
    let log = fs::read_to_string(prometheus.folder.path().join("log")).unwrap();
    assert!(!log.contains("level=warn") && !log.contains("level=error"), "{log}");
    drop(prometheus);
    cluster.stop().await;
}
