//! Scheduler and kubelets against a real apiserver, in memory: pods in, what becomes of them out.

mod details;
mod events;
mod image_volumes;
mod kubelet;
mod node_files;
mod numbers;
mod pressure;
mod profiles;
mod refusals;
mod resizes;
mod scheduling;
mod scripts;
mod static_pods;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt;
use futures::future::BoxFuture;
use kubarium::apimachinery::options::{DeleteOptions, ListOptions, PatchType};
use kubarium::apimachinery::status::Status;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apimachinery::wire::ApiService;
use kubarium::apis::core::event::EVENTS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::node::NODES;
use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use kubarium::apis::scheme::Scheme;
use kubarium::apiserver::config::ApiserverConfig;
use kubarium::apiserver::handler_chain::build_handler_chain;
use kubarium::apiserver::kubelet_client::{KubeletLookup, LogRequest};
use kubarium::apiserver::registry::Registry;
use kubarium::apiserver::storage::Storage;
use kubarium::client_go::client::Client;
use kubarium::client_go::component::ComponentContext;
use kubarium::client_go::tasks::StopOnDrop;
use kubarium::clock::Clock;
use kubarium::entropy::Entropy;
use kubarium::etcd::{Kv, Options};
use kubarium::flow::Flow;
use kubarium::kubelet::kubelet::Kubelet;
use kubarium::kubelet::node_config::NodeConfig;
use kubarium::kubelet::players::Players;
use kubarium::kubelet::server::LogOptions;
use kubarium::network::Network;
use kubarium::scheduler::scheduler::Scheduler;
use serde_json::{Value, json};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// An apiserver with a scheduler, and kubelets as they are started.
pub(crate) struct Nodes {
    service: ApiService,
    pub client: Client,
    pub clock: Clock,
    kubelets: Arc<Kubelets>,
    running: Mutex<BTreeMap<String, StopOnDrop>>,
}

#[derive(Default)]
struct Kubelets(Mutex<BTreeMap<String, Kubelet>>);

impl KubeletLookup for Kubelets {
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<Body, Status>> {
        let options = LogOptions {
            container: request.container,
            follow: request.options.follow,
            previous: request.options.previous,
            since_seconds: request.options.since_seconds,
            since_time: request.options.since_time,
            timestamps: request.options.timestamps,
            tail_lines: request.options.tail_lines.map(|lines| lines as usize),
            limit_bytes: request.options.limit_bytes.map(|bytes| bytes as usize),
        };
        let kubelet = self.0.lock().unwrap().get(&request.node).cloned();
        Box::pin(async move {
            let log = kubelet.unwrap().container_logs(&request.namespace, &request.pod, options).await?;
            Ok(Body::from_stream(log.map(Ok::<_, std::convert::Infallible>)))
        })
    }
}

impl Nodes {
    /// With a scheduler and so many nodes.
    pub(crate) async fn start(count: u32) -> Nodes {
        let (clock, scheme) = (Clock::real(), Arc::new(Scheme::builtin()));
        let kv = Kv::open(Options::default(), clock.clone()).expect("memory is there");
        let storage = Storage::new(kv, clock.clone(), Entropy::seeded(1));
        let registry = Registry::new(storage, scheme.clone(), clock.clone(), Entropy::seeded(2));
        let kubelets = Arc::<Kubelets>::default();
        let mut config = ApiserverConfig::new(scheme, registry, clock.clone(), Entropy::seeded(3));
        config.kubelets = kubelets.clone();
        let service = build_handler_chain(config).unwrap();
        let admin = Arc::new(UserInfo::authenticated("admin", &["system:masters"]));
        let client = Client::new(service.clone(), admin, clock.clone(), Flow::off());
        let nodes = Nodes { service, client, clock, kubelets, running: Mutex::default() };
        for namespace in ["default", "kube-node-lease"] {
            nodes.client.create(&NAMESPACES, "", json!({"metadata": {"name": namespace}})).await.unwrap();
        }
        let account = json!({"metadata": {"name": "default"}});
        nodes.client.create(&SERVICE_ACCOUNTS, "default", account).await.unwrap();
        nodes.start_scheduler();
        for number in 1..=count {
            nodes.start_kubelet(NodeConfig::numbered(number)).await;
        }
        nodes
    }

    fn start_scheduler(&self) {
        let context = self.context("kube-scheduler", ("default-scheduler", ""));
        Scheduler::new(context.clone()).start();
        self.keep("kube-scheduler", &context);
    }

    /// Starts a kubelet, and returns when its node is there. New nodes are tainted as not ready; nobody but
    /// the node lifecycle controller takes that away, whose place this takes.
    pub(crate) async fn start_kubelet(&self, config: NodeConfig) {
        let name = config.name.clone();
        let context = self.context(&format!("kubelet/{name}"), ("kubelet", &name));
        let network = Network::nobody(context.clock.clone(), context.entropy.clone());
        let kubelet = Kubelet::new(context.clone(), config, Players::new(&context.clock), network).unwrap();
        kubelet.start();
        self.kubelets.0.lock().unwrap().insert(name.clone(), kubelet);
        self.keep(&name, &context);
        self.until(|| async { self.client.get(&NODES, "", &name).await.ok() }).await;
        let untaint = json!({"spec": {"taints": null}});
        self.client.patch(&NODES, "", &name, PatchType::Merge, &untaint).await.unwrap();
    }

    /// Stops a kubelet as a crash would.
    pub(crate) fn stop_kubelet(&self, name: &str) {
        drop(self.running.lock().unwrap().remove(name));
        self.kubelets.0.lock().unwrap().remove(name);
    }

    /// The kubelet of a node.
    pub(crate) fn kubelet(&self, node: &str) -> Kubelet {
        self.kubelets.0.lock().unwrap()[node].clone()
    }

    pub(crate) async fn create_pod(&self, name: &str, spec: Value) {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.client.create(&PODS, "default", pod).await.unwrap();
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.client.delete(&PODS, "default", name, &DeleteOptions::default()).await.unwrap();
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        let list = self.client.list(&PODS, "default", &ListOptions::default()).await.unwrap();
        list.items.iter().map(|pod| pod.to_value()).collect()
    }

    /// The pod as soon as `holds` holds of it.
    pub(crate) async fn pod_when(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let found = || async {
            let pod = self.client.get(&PODS, "default", name).await.ok()?.to_value();
            holds(&pod).then_some(pod)
        };
        self.until(found).await
    }

    /// Reasons and messages of the Events about a pod, in their order.
    pub(crate) async fn events(&self, pod: &str) -> Vec<(String, String)> {
        let list = self.client.list(&EVENTS, "default", &ListOptions::default()).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut events: Vec<(u64, String, String)> = Vec::new();
        for event in list.items.iter() {
            let value = event.to_value();
            if value["involvedObject"]["name"] == *pod {
                let revision = event.metadata.resource_version;
                events.push((revision, text(&value["reason"]), text(&value["message"])));
            }
        }
        events.sort();
        events.into_iter().map(|(_, reason, message)| (reason, message)).collect()
    }

    /// Asks until there is an answer.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(&self, ask: impl Fn() -> F) -> T {
        let start = self.clock.elapsed();
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            let pods = || async { serde_json::to_string_pretty(&self.pods().await).unwrap() };
            if self.clock.elapsed() - start > PATIENCE {
                panic!("it never happened; the pods are {}", pods().await);
            }
            self.clock.sleep(Duration::from_millis(2)).await;
        }
    }

    fn context(&self, component: &str, source: (&str, &str)) -> ComponentContext {
        let identity = Arc::new(UserInfo::authenticated(component, &["system:masters"]));
        let client = Client::new(self.service.clone(), identity, self.clock.clone(), Flow::off());
        ComponentContext::new(component, source, client, self.clock.clone(), Entropy::from_system())
    }

    fn keep(&self, name: &str, context: &ComponentContext) {
        self.running.lock().unwrap().insert(name.to_owned(), context.tasks.stop_on_drop());
    }
}

/// The status of a condition; empty when it is not there.
pub(crate) fn condition<'a>(pod: &'a Value, condition_type: &str) -> &'a Value {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == *condition_type).unwrap_or(&Value::Null)
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

pub(crate) fn nginx() -> Value {
    json!({"containers": [{"name": "nginx", "image": "nginx"}]})
}

pub(crate) fn busybox(command: &str) -> Value {
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", command]});
    json!({"containers": [container], "restartPolicy": "Never"})
}
