//! kwok's published usages and Metrics, and what its own tests say of expressions.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value as Json, json};

use super::book::{MeasureBook, SaidUsage};
use super::metric::{MeasuredNode, ReadMetric};
use super::node_usage::{NodeUsage, UsageOf};
use super::resource_usage::ReadUsage;
use apimachinery::time::{self, Time};
use usage::Against;

const BEGAN: &str = "2022-01-01T00:00:00Z";

fn began() -> Time {
    time::parse(BEGAN).unwrap()
}

/// A container of each pod uses 2 of everything, and used 60 since its start.
struct TwoOfAll;

impl NodeUsage for TwoOfAll {
    fn usage(&self, of: &UsageOf<'_>) -> f64 {
        let containers = if of.container.is_some() { 1.0 } else { 2.0 };
        containers * if of.pod.is_some() { 2.0 } else { 10.0 }
    }

    fn cumulative_usage(&self, of: &UsageOf<'_>) -> f64 {
        self.usage(of) * 30.0
    }

    fn started_containers(&self) -> u64 {
        2
    }
}

fn node() -> MeasuredNode {
    let pod = |name: &str| {
        let container = |name: &str| json!({"name": name, "resources": {"requests": {"cpu": "10m"}}});
        let metadata = json!({"name": name, "namespace": "default", "creationTimestamp": BEGAN,
            "annotations": {"cpu_usage": "10m"}});
        json!({"metadata": metadata, "spec": {"containers": [container("a"), container("b")]}})
    };
    MeasuredNode {
        node: json!({"metadata": {"name": "n", "creationTimestamp": BEGAN},
            "status": {"allocatable": {"cpu": "90m"}}}),
        pods: vec![pod("one"), pod("two")],
    }
}

fn answer(spec: &Json, path: &str) -> Option<String> {
    let book = MeasureBook::default();
    let metric = ReadMetric::read("m", spec).unwrap();
    book.set_metrics([("m".to_owned(), Arc::new(metric))].into());
    book.answer(("n", path), &node(), Arc::new(TwoOfAll), began() + TimeDelta::days(1))
}

fn gauge(dimension: &str, value: &str) -> String {
    let spec = json!({"path": "/metrics/x", "metrics": [{"name": "v", "kind": "gauge", "dimension": dimension, "value": value}]});
    let metric = ReadMetric::read("n", &spec).unwrap();
    let book = MeasureBook::default();
    book.set_metrics([("n".to_owned(), Arc::new(metric))].into());
    book.answer(("n", "/metrics/x"), &node(), Arc::new(TwoOfAll), began() + TimeDelta::days(1)).unwrap()
}

fn published(file: &str) -> Json {
    let path = format!("{}/../../tests/fixtures/kwok/metrics/{file}", env!("CARGO_MANIFEST_DIR"));
    apimachinery::yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_published_metric_is_answered_by_path_and_node() {
    let spec = &published("metrics-resource.yaml")["spec"];
    let text = answer(spec, "/metrics/nodes/n/metrics/resource").unwrap();
    let wanted = "# HELP container_cpu_usage_seconds_total [ALPHA] Cumulative cpu time consumed by the container in core-seconds\\n\n\
         # TYPE container_cpu_usage_seconds_total counter\n\
         container_cpu_usage_seconds_total{container=\"a\",namespace=\"default\",pod=\"one\"} 60\n";
    assert!(text.starts_with(wanted), "{text}");
    for line in [
        "container_start_time_seconds{container=\"b\",namespace=\"default\",pod=\"two\"} 86400\n",
        "pod_memory_working_set_bytes{namespace=\"default\",pod=\"one\"} 4\n",
        "node_cpu_usage_seconds_total 600\n",
        "scrape_error 0\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(answer(spec, "/metrics/nodes/other/metrics/resource"), None);
    assert_eq!(answer(spec, "/metrics/resource"), None);
}

/// kwok's own `TestNodeEvaluation` and `TestResourceEvaluation`, and amounts with whole numbers.
#[test]
fn expressions_count_with_times_and_amounts() {
    let since = "( Now().UnixSecond() - node.metadata.creationTimestamp.UnixSecond() ) * node.StartedContainersTotal() / 10.0";
    assert!(gauge("node", since).ends_with("v 17280\n"));
    let amounts = "( Quantity(\"10m\") + Quantity(pod.metadata.annotations[\"cpu_usage\"]) + node.status.allocatable[\"cpu\"] \
         + pod.spec.containers[0].resources.requests[\"cpu\"] ) * 1.5 * 10";
    let text = gauge("pod", amounts);
    let value: f64 = text.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((value - 1.8).abs() < 1e-9, "{text}");
    assert!(
        gauge("container", "Quantity(\"1Mi\") > Quantity(\"1Ki\") && Quantity(\"2\") == 2")
            .ends_with("v 1\n")
    );
    // One that fails is left out, and so is one without end.
    assert_eq!(gauge("node", "pod.Usage('cpu')"), "");
}

#[test]
fn histograms_count_hidden_buckets_in_the_next_one() {
    let buckets = json!([{"le": 1.0, "value": "2"}, {"le": 0.5, "value": "1", "hidden": true}, {"le": 4.0, "value": "3"}]);
    let spec = json!({"path": "/metrics/nodes/{nodeName}/h", "metrics": [{"name": "h", "kind": "histogram", "buckets": buckets}]});
    let text = answer(&spec, "/metrics/nodes/n/h").unwrap();
    assert!(
        text.ends_with(
            "h_bucket{le=\"1\"} 3\nh_bucket{le=\"4\"} 6\nh_bucket{le=\"+Inf\"} 6\nh_sum 14.5\nh_count 6\n"
        ),
        "{text}"
    );
}

#[test]
fn what_is_wrong_with_a_metric_is_said() {
    let read = |change: Json| {
        let mut spec =
            json!({"path": "/metrics/x", "metrics": [{"name": "v", "kind": "gauge", "value": "1"}]});
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        ReadMetric::read("m", &spec).unwrap_err().to_string()
    };
    assert_eq!(read(json!({"path": "/other"})), "path: \"/other\" must begin with /metrics/");
    let metric = |metric: Json| read(json!({"metrics": [metric]}));
    assert!(
        metric(json!({"name": "v", "kind": "summary"})).starts_with("metrics[0].kind: \"summary\" must be")
    );
    assert!(metric(json!({"name": "v w", "kind": "gauge"})).starts_with("metrics[0].name: \"v w\" is no"));
    assert!(metric(json!({"name": "v", "kind": "gauge", "value": "1 +"})).starts_with("metrics[0].value: "));
}

fn value(book: &MeasureBook, pod: &str, container: &str, resource: &str) -> Option<f64> {
    let variables = json!({"pod": {"metadata": {"name": pod, "creationTimestamp": BEGAN,
        "annotations": {"kwok.x-k8s.io/usage-cpu": "250m"}}}});
    let against =
        Against { whole: 0.0, variables: Some(&variables), began: began().timestamp() as f64, load: None };
    match book.usage("default", pod, container, resource) {
        SaidUsage::Nothing => None,
        SaidUsage::None => Some(0.0),
        SaidUsage::Curve(curve) => Some(curve.value(120.0, &against)),
    }
}

#[test]
fn a_usage_of_the_pods_name_goes_before_those_of_many() {
    let book = MeasureBook::default();
    assert_eq!(value(&book, "one", "a", "cpu"), None);
    let read = |spec: Json| Arc::new(ReadUsage::read(&spec).unwrap());
    let everybody = read(published("usage-from-annotation.yaml")["spec"].clone());
    let growing = json!({"usages": [{"usage": {"memory": {"expression": "Quantity(\"1Mi\") * (pod.SinceSecond() / 60.0)"}}}]});
    let selected = json!({"selector": {"matchNames": ["chosen"]}, "usages": [{"containers": ["a"], "usage": {"cpu": {"value": 2}}}]});
    book.set_cluster_usages([("b".to_owned(), everybody), ("a".to_owned(), read(selected))].into());
    assert_eq!(value(&book, "one", "a", "cpu"), Some(0.25));
    assert_eq!(value(&book, "one", "a", "memory"), Some(1_048_576.0));
    assert_eq!(
        (value(&book, "chosen", "a", "cpu"), value(&book, "chosen", "a", "memory")),
        (Some(2.0), Some(0.0))
    );
    assert_eq!(value(&book, "chosen", "b", "cpu"), Some(0.25));
    let changes = book.count_changes();
    book.set_usages([(("default".to_owned(), "one".to_owned()), read(growing))].into());
    assert_eq!(book.count_changes(), changes + 1);
    assert_eq!(
        (value(&book, "one", "a", "cpu"), value(&book, "one", "a", "memory")),
        (Some(0.0), Some(2_097_152.0))
    );
    book.set_usages([].into());
    book.set_cluster_usages([].into());
    assert_eq!((value(&book, "one", "a", "cpu"), book.has_usages()), (None, false));
}

#[test]
fn what_is_drawn_is_the_same_whenever_a_moment_is_looked_at() {
    let spec = json!({"usages": [{"usage": {"cpu": {"expression": "Rand()"}}}]});
    let book = MeasureBook::default();
    book.set_cluster_usages([("a".to_owned(), Arc::new(ReadUsage::read(&spec).unwrap()))].into());
    assert_eq!(value(&book, "one", "a", "cpu"), value(&book, "one", "a", "cpu"));
}

#[test]
fn what_is_wrong_with_a_usage_is_said() {
    let refused = |usage: Json| {
        ReadUsage::read(&json!({"usages": [{"usage": {"cpu": usage}}]})).unwrap_err().to_string()
    };
    assert_eq!(
        refused(json!({"value": "much"})),
        "usages[0].usage[cpu].value: \"much\" is no quantity, as 100m or 64Mi"
    );
    assert!(refused(json!({"expression": "Quantity(1)"})).starts_with("usages[0].usage[cpu].expression: "));
}
