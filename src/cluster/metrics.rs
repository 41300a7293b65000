//! The APIs of metrics, served in this process: how requests reach them, who measures, and what is
//! registered. Whoever registers a server of his own takes their place, since an APIService names one
//! Service.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::config::Config;
use super::inside::Inside;
use super::kubelet_lookup::Kubelets;
use super::metrics_images;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apis::apiregistration::api_service::API_SERVICES;
use apis::kind::Kind;
use apis::rbac::role::CLUSTER_ROLES;
use apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
use client_go::client::Client;
use kubelet::container_runtime::stats::ContainerStats;
use kubelet::kubelet_api::UsageTotal;
use metrics_server::{ContainerSample, MetricsServer, NodeSample, PodSample, UsageSource};

/// The label of what is there from the start: no user has made it.
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
/// The Service that leads to the servers: there is none of that name.
const SERVICE: (&str, &str) = ("kube-system", "kubarium-metrics");
/// In whose name they ask.
const ACCOUNT: &str = "metrics-server";
/// Group, version, and the priority of the version.
type Registered = (&'static str, &'static str, u32);
const RESOURCE_METRICS: &[Registered] = &[("metrics.k8s.io", "v1beta1", 100)];
const OTHER_METRICS: &[Registered] = &[
    ("custom.metrics.k8s.io", "v1beta2", 200),
    ("custom.metrics.k8s.io", "v1beta1", 100),
    ("external.metrics.k8s.io", "v1beta1", 100),
];

/// Over how long the CPU of a node is measured.
const NODE_WINDOW: std::time::Duration = std::time::Duration::from_secs(15);

/// Puts the servers behind the apiserver, if there are to be any.
pub(super) fn serve(inside: &Arc<Inside>) {
    let Inside { config, service, scheme, flow, clock, .. } = &**inside;
    if !config.metrics_server && !config.metrics_adapter {
        return;
    }
    let user = Arc::new(UserInfo::service_account("kube-system", ACCOUNT));
    let clock = clock.named(ACCOUNT);
    let client = Client::new(service.clone(), user, clock.clone(), flow.clone());
    let times = (clock, config.entropy.clone());
    let server = MetricsServer::new(client, scheme.clone(), times, inside.running.kubelets());
    inside.interceptors.servers.add(SERVICE.0, SERVICE.1, server.service());
    metrics_images::stand_in(inside, SERVICE);
}

/// Registers what is served, and takes back what an earlier start registered and is served no more.
///
/// # Errors
/// The server's refusal.
pub(super) async fn register(client: &Client, config: &Config, is_new: bool) -> Result<(), Status> {
    let groups = [(config.metrics_server, RESOURCE_METRICS), (config.metrics_adapter, OTHER_METRICS)];
    for (is_served, versions) in groups {
        for version in versions {
            if is_served {
                create(client, &API_SERVICES, api_service(version)).await?;
            } else if !is_new {
                take_back(client, version).await?;
            }
        }
    }
    if !config.metrics_server && !config.metrics_adapter {
        return Ok(());
    }
    create(client, &CLUSTER_ROLES, readers()).await?;
    create(client, &CLUSTER_ROLES, own_role(config.metrics_adapter)).await?;
    create(client, &CLUSTER_ROLE_BINDINGS, own_binding()).await
}

async fn create(client: &Client, kind: &Kind, tree: Value) -> Result<(), Status> {
    match client.create(kind, "", tree).await {
        Err(refused) if !refused.is_already_exists() => Err(refused),
        _ => Ok(()),
    }
}

async fn take_back(client: &Client, (group, version, _): &Registered) -> Result<(), Status> {
    let name = format!("{version}.{group}");
    let found = match client.get(&API_SERVICES, "", &name).await {
        Err(status) if status.is_not_found() => return Ok(()),
        found => found?.to_value(),
    };
    if found["spec"]["service"]["name"] != SERVICE.1 {
        return Ok(());
    }
    client.delete(&API_SERVICES, "", &name, &DeleteOptions::default()).await.map(drop)
}

fn api_service((group, version, priority): &Registered) -> Value {
    let service = json!({"namespace": SERVICE.0, "name": SERVICE.1, "port": 443});
    json!({
        "metadata": {"name": format!("{version}.{group}"), "labels": {"k8s-app": ACCOUNT, BOOTSTRAPPING: "metrics-server"}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": priority,
            "insecureSkipTLSVerify": true, "service": service},
    })
}

/// Whoever may look at everything may look at what is used, as metrics-server's manifest has it.
fn readers() -> Value {
    let aggregate = |role: &str| (format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true");
    let mut labels: std::collections::BTreeMap<_, _> = ["admin", "edit", "view"].map(aggregate).into();
    labels.insert(BOOTSTRAPPING.into(), "metrics-server");
    let rule = json!({"apiGroups": ["metrics.k8s.io"], "resources": ["pods", "nodes"],
        "verbs": ["get", "list", "watch"]});
    json!({"metadata": {"name": "system:aggregated-metrics-reader", "labels": labels}, "rules": [rule]})
}

/// Other metrics may be of any object.
fn own_role(of_anything: bool) -> Value {
    let (groups, resources) = if of_anything { ("*", json!(["*"])) } else { ("", json!(["pods", "nodes"])) };
    let rule = json!({"apiGroups": [groups], "resources": resources, "verbs": ["get", "list", "watch"]});
    json!({"metadata": {"name": "system:metrics-server", "labels": own_labels()}, "rules": [rule]})
}

fn own_labels() -> Value {
    json!({BOOTSTRAPPING: "metrics-server"})
}

fn own_binding() -> Value {
    json!({
        "metadata": {"name": "system:metrics-server", "labels": own_labels()},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:metrics-server"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"}],
    })
}

impl UsageSource for Kubelets {
    fn pod<'a>(&'a self, node: &'a str, uid: &'a str) -> BoxFuture<'a, Option<PodSample>> {
        async move {
            let usage = self.get(node)?.pod_usage(uid).await?;
            let container = |(name, stats): (String, ContainerStats)| {
                let ContainerStats { cpu_nano_cores, memory_bytes, .. } = stats;
                ContainerSample { name, cpu_nano_cores, memory_bytes }
            };
            let containers = usage.containers.into_iter().map(container).collect();
            Some(PodSample { window: usage.window, containers })
        }
        .boxed()
    }

    fn node<'a>(&'a self, node: &'a str) -> BoxFuture<'a, Option<NodeSample>> {
        async move {
            let UsageTotal { cpu_nano_cores, memory_bytes, .. } = self.get(node)?.node_usage().await;
            Some(NodeSample { window: NODE_WINDOW, cpu_nano_cores, memory_bytes })
        }
        .boxed()
    }
}
