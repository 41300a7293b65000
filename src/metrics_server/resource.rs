//! `metrics.k8s.io`: what nodes and pods use (metrics-server's `pkg/api`).

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::MetricsServer;
use super::answer::{json_answer, list, resource_list};
use super::request::MetricsRequest;
use super::source::NodeSample;
use apimachinery::gvk::GroupResource;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::rfc3339;
use apimachinery::wire::ApiResponse;
use apis::core::node::NODES;
use apis::views::pod::Pod;
use golang::duration;

const GROUP: &str = "metrics.k8s.io";
const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// What a pod or a node uses, as it is shown.
struct Measured {
    tree: Value,
    cpu: u64,
    memory: u64,
}

impl MetricsServer {
    pub(super) async fn resource_metrics(&self, request: &MetricsRequest) -> Result<ApiResponse, Status> {
        if request.version() != "v1beta1" {
            return Err(Status::path_not_found());
        }
        match request.path()[..] {
            [] => Ok(json_answer(&discovery())),
            ["nodes"] => self.nodes(request).await,
            ["nodes", name] => self.node(request, name).await,
            ["pods"] => self.pods(request, "").await,
            ["namespaces", namespace, "pods"] => self.pods(request, namespace).await,
            ["namespaces", namespace, "pods", name] => self.pod(request, namespace, name).await,
            _ => Err(Status::path_not_found()),
        }
    }

    async fn pods(&self, request: &MetricsRequest, namespace: &str) -> Result<ApiResponse, Status> {
        request.must_read("pods")?;
        let pods = self.pods.list(namespace, &request.list_options()?).await?;
        let mut measured = Vec::new();
        for pod in &pods {
            measured.extend(self.measured_pod(pod).await);
        }
        Ok(shown_list(request, "PodMetricsList", measured))
    }

    async fn pod(
        &self,
        request: &MetricsRequest,
        namespace: &str,
        name: &str,
    ) -> Result<ApiResponse, Status> {
        request.must_read("pods")?;
        let resource = GroupResource::new(GROUP, "podmetrics");
        let missing = || Status::not_found(&resource, &format!("{namespace}/{name}"));
        let pod = self.pods.find(namespace, name).await?.ok_or_else(missing)?;
        let measured = self.measured_pod(&pod).await.ok_or_else(missing)?;
        Ok(shown_one(request, measured))
    }

    async fn nodes(&self, request: &MetricsRequest) -> Result<ApiResponse, Status> {
        request.must_read("nodes")?;
        let nodes = self.client.list(&NODES, "", &request.list_options()?).await?;
        let mut measured = Vec::new();
        for node in nodes.items.iter() {
            measured.extend(self.measured_node(node).await);
        }
        Ok(shown_list(request, "NodeMetricsList", measured))
    }

    async fn node(&self, request: &MetricsRequest, name: &str) -> Result<ApiResponse, Status> {
        request.must_read("nodes")?;
        let resource = GroupResource::new(GROUP, "nodemetrics");
        let missing = || Status::not_found(&resource, name);
        let node = match self.client.get(&NODES, "", name).await {
            Err(status) if status.is_not_found() => return Err(missing()),
            found => found?,
        };
        let measured = self.measured_node(&node).await.ok_or_else(missing)?;
        Ok(shown_one(request, measured))
    }

    async fn measured_pod(&self, object: &Object) -> Option<Measured> {
        let pod = object.view::<Pod>();
        if pod.status.phase != "Running" {
            return None;
        }
        let sample = self.usage.pod(&pod.spec.node_name, &object.metadata.uid).await?;
        let mut cpu: u64 = 0;
        let mut memory: u64 = 0;
        let mut containers = Vec::new();
        for container in &sample.containers {
            cpu = cpu.saturating_add(container.cpu_nano_cores);
            memory = memory.saturating_add(container.memory_bytes);
            let usage = usage(container.cpu_nano_cores, container.memory_bytes);
            containers.push(json!({"name": container.name, "usage": usage}));
        }
        let mut tree = self.head("PodMetrics", object, sample.window);
        tree["metadata"]["namespace"] = object.metadata.namespace.as_str().into();
        tree["containers"] = containers.into();
        Some(Measured { tree, cpu, memory })
    }

    async fn measured_node(&self, object: &Object) -> Option<Measured> {
        let NodeSample { window, cpu_nano_cores, memory_bytes } =
            self.usage.node(&object.metadata.name).await?;
        let mut tree = self.head("NodeMetrics", object, window);
        tree["usage"] = usage(cpu_nano_cores, memory_bytes);
        Some(Measured { tree, cpu: cpu_nano_cores, memory: memory_bytes })
    }

    /// What both kinds have.
    fn head(&self, kind: &str, object: &Object, window: Duration) -> Value {
        let now = rfc3339(self.clock.now());
        let mut metadata = Map::new();
        metadata.insert("name".into(), object.metadata.name.as_str().into());
        metadata.insert("creationTimestamp".into(), now.as_str().into());
        if !object.metadata.labels.is_empty() {
            metadata.insert("labels".into(), json!(object.metadata.labels));
        }
        json!({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "timestamp": now,
            "window": duration::format(window)})
    }
}

fn discovery() -> Value {
    let resource = |name: &str, kind: &str, namespaced: bool| {
        json!({"name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
            "verbs": ["get", "list"]})
    };
    let resources = json!([resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)]);
    resource_list(API_VERSION, resources)
}

/// In the units of metrics-server.
fn usage(cpu: u64, memory: u64) -> Value {
    json!({"cpu": shown_cpu(cpu), "memory": shown_memory(memory)})
}

fn shown_cpu(nano_cores: u64) -> String {
    if nano_cores == 0 { "0".into() } else { format!("{nano_cores}n") }
}

fn shown_memory(bytes: u64) -> String {
    format!("{}Ki", bytes.div_ceil(1024))
}

fn shown_list(request: &MetricsRequest, kind: &str, mut measured: Vec<Measured>) -> ApiResponse {
    if request.wants_table {
        return json_answer(&table(measured));
    }
    for one in &mut measured {
        if let Some(tree) = one.tree.as_object_mut() {
            tree.remove("kind");
            tree.remove("apiVersion");
        }
    }
    json_answer(&list(kind, API_VERSION, measured.into_iter().map(|one| one.tree).collect()))
}

fn shown_one(request: &MetricsRequest, measured: Measured) -> ApiResponse {
    json_answer(&if request.wants_table { table(vec![measured]) } else { measured.tree })
}

/// `metav1.Table`
fn table(measured: Vec<Measured>) -> Value {
    let column = |name: &str, format: &str, description: &str| json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0});
    let columns = json!([
        column("Name", "name", "Name of the resource"),
        column("cpu", "quantity", "Resource usage"),
        column("memory", "quantity", "Resource usage"),
        column("Window", "duration", "Window of time over which the metrics were gathered"),
    ]);
    let row = |one: Measured| {
        let Measured { tree, cpu, memory } = one;
        let cells = [tree["metadata"]["name"].clone(), shown_cpu(cpu).into(), shown_memory(memory).into()];
        let cells: Vec<Value> = cells.into_iter().chain([tree["window"].clone()]).collect();
        let object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": tree["metadata"]});
        json!({"cells": cells, "object": object})
    };
    let rows: Vec<Value> = measured.into_iter().map(row).collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns,
        "rows": rows})
}
