//! A cluster with parts of your own, in Rust and in one process with it: a controller, a scheduler plugin, an
//! admission plugin, and a container runtime around the simulated one. Elsewhere each is a program that is
//! built, packed, deployed and granted rights before a test can see it.
//!
//! `cargo run --example own_parts`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use kubarium::clock::Clock;
use kubarium::kinds::{CONFIG_MAPS, PODS};
use kubarium::own::cri::*;
use kubarium::own::framework::{node_info::NodeInfo, plugin, pod_info::PodInfo, status};
use kubarium::own::*;
use kubarium::{Client, Cluster, Config, Entropy, PatchType, Status};
use serde_json::{Value, json};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let start = "2030-01-01T00:00:00Z".parse()?;
    let config = Config::new()
        .nodes(3)
        .clock(Clock::stepped(start))
        .entropy(Entropy::seeded(7))
        .controllers(OwnControllers::new().with(|_| Greeter))
        .scheduler_plugins(OwnPlugins::new().with(1, |_| WantedNode))
        .admission(OwnAdmission::new().with("NoSecrets", |_| NoSecrets))
        .runtime(OwnRuntime::new(|_, simulated| Arc::new(EmptyShelf(simulated))));
    let cluster = Cluster::start(config).await?;
    let client = cluster.client();

    // The controller greets, and can be stopped and started as those of the cluster.
    greets(&cluster, "ann", Some("hello")).await?;
    cluster.stop_component("controller/greeter")?;
    greets(&cluster, "bob", None).await?;
    cluster.start_component("controller/greeter")?;
    cluster.settled().await?;
    assert_eq!(greeting(&client, "bob").await?, "hello");

    // The admission plugin refuses.
    let told = client.create(&CONFIG_MAPS, "default", map("password")).await.expect_err("it is no place");
    assert_eq!(told.code, 403);
    assert!(told.message.contains("passwords belong into a Secret"), "{}", told.message);

    // The scheduler plugin knows one node for this pod, and the runtime has no such image.
    for (name, image) in [("web", "nginx"), ("broken", "example.com/rare")] {
        let metadata = json!({"name": name, "annotations": {NODE: "node-2"}});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}]}});
        client.create(&PODS, "default", pod).await?;
    }
    cluster.pass(Duration::from_secs(5)).await?;
    let web = client.get(&PODS, "default", "web").await?.to_value();
    assert_eq!((&web["spec"]["nodeName"], &web["status"]["phase"]), (&json!("node-2"), &json!("Running")));
    let broken = client.get(&PODS, "default", "broken").await?.to_value();
    let waiting = &broken["status"]["containerStatuses"][0]["state"]["waiting"];
    assert!(waiting["message"].to_string().contains("the shelf is empty"), "{waiting}");
    cluster.stop().await;
    Ok(())
}

/// Greets every ConfigMap that wants it.
struct Greeter;

impl Controller for Greeter {
    const NAME: &'static str = "greeter";
    const EVENT_SOURCE: &'static str = "greeter";
    const SERVICE_ACCOUNT: &'static str = "";

    fn watches(&self) -> Watches {
        Watches::none().maps(&CONFIG_MAPS, |change, enqueue| {
            let map = change.object();
            if map.metadata.labels.get("wants").is_some_and(|wanted| wanted == "greeting") {
                enqueue.now(map.key());
            }
        })
    }

    async fn reconcile(&self, ctx: &Reconcile, key: &Key) -> Result<Action, Status> {
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        let greeting = json!({"data": {"greeting": "hello"}});
        match ctx.client.patch(&CONFIG_MAPS, namespace, name, PatchType::Merge, &greeting).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Action::Done),
        }
    }
}

const NODE: &str = "example.com/node";

/// A pod that says which node it wants gets no other.
struct WantedNode;

impl plugin::Plugin for WantedNode {
    fn name(&self) -> &'static str {
        "WantedNode"
    }

    fn filter(&self, _: &plugin::CycleState, pod: &PodInfo, node: &NodeInfo) -> status::Status {
        match pod.object.to_value()["metadata"]["annotations"][NODE].as_str() {
            Some(wanted) if wanted != &*node.name => status::Status::unresolvable("node(s) were not wanted"),
            _ => status::Status::success(),
        }
    }
}

/// Keeps passwords out of ConfigMaps.
struct NoSecrets;

impl AdmissionPlugin for NoSecrets {
    fn handles(&self, attributes: &AdmissionAttributes) -> bool {
        attributes.writes("", "configmaps")
    }

    fn validate<'a>(
        &'a self,
        attributes: &'a AdmissionAttributes,
        object: Option<&'a Value>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let is_one = object.is_some_and(|map| map["metadata"]["name"] == "password");
        let refused = || forbidden(attributes, object, "passwords belong into a Secret");
        Box::pin(ready(if is_one { Err(refused()) } else { Ok(()) }))
    }
}

/// The simulated runtime, with one image that nobody has.
struct EmptyShelf(Arc<dyn RuntimeService>);

/// The verbs that go on to the simulated runtime as they are.
macro_rules! as_simulated {
    ($(fn $verb:ident(&self $(, $argument:ident: $type:ty)*) $(-> $answer:ty)?;)*) => {
        $(fn $verb(&self $(, $argument: $type)*) $(-> $answer)? { self.0.$verb($($argument),*) })*
    };
}

impl StatsService for EmptyShelf {
    as_simulated! {
        fn container_stats(&self, measured: &MeasuredContainer<'_>, now: Time) -> ContainerStats;
        fn pod_sandbox_stats(&self, pod: &Pod, started_at: Time, now: Time) -> PodSandboxStats;
        fn volume_bytes(&self, pod: &Pod, volume: &str, started_at: Time, now: Time) -> Option<u64>;
        fn fills_storage(&self, pod: &Pod) -> bool;
        fn usage_problems(&self, pod: &Pod) -> Vec<String>;
    }
}

impl RuntimeService for EmptyShelf {
    fn pull_image(&self, config: &ContainerConfig<'_>, now: Time) -> Call<Image> {
        if config.container.image != "example.com/rare" {
            return self.0.pull_image(config, now);
        }
        let (reason, message) = ("ErrImagePull".into(), "the shelf is empty".into());
        Call { returns_at: Some(now), result: Err(RuntimeError { reason, message }) }
    }

    as_simulated! {
        fn run_pod_sandbox(&self, config: &PodSandboxConfig<'_>, now: Time) -> Call<PodSandboxStatus>;
        fn restore_pod_sandbox(&self, config: &PodSandboxConfig<'_>, status: &PodSandboxStatus);
        fn pod_sandbox_status(&self, pod_uid: &str) -> Option<PodSandboxStatus>;
        fn pods_at(&self, ip: &str) -> Vec<Arc<str>>;
        fn stop_pod_sandbox(&self, pod_uid: &str);
        fn image_status(&self, image: &str, now: Time) -> Option<Image>;
        fn list_images(&self, limit: usize, now: Time) -> (Vec<Image>, usize);
        fn knows_process(&self, container: &Container) -> bool;
        fn looks_around(&self, container: &Container) -> bool;
        fn create_container(&self, config: &ContainerConfig<'_>, now: Time) -> Call<ContainerId>;
        fn start_container(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, found: Option<Surroundings>, now: Time
        ) -> RuntimeContainerStatus;
        fn restore_container(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, found: Option<Surroundings>, started_at: Time
        ) -> RuntimeContainerStatus;
        fn question(&self, id: &ContainerId) -> Option<PendingQuestion>;
        fn hear(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, asked: &PendingQuestion, answered: Answered
        );
        fn container_status(&self, id: &ContainerId) -> Option<RuntimeContainerStatus>;
        fn list_containers(&self) -> Vec<ContainerId>;
        fn update_container(
            &self, config: &ContainerConfig<'_>, id: &ContainerId,
            shown: &dyn Fn(&[MountedVolume]) -> Tree, now: Time
        ) -> bool;
        fn written_files(&self, config: &ContainerConfig<'_>, id: &ContainerId, now: Time) -> Vec<Left>;
        fn stop_container(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, timeout: Duration, now: Time
        ) -> Call<Exit>;
        fn exited_container(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, exit: &Exit, finished_at: Time
        ) -> ExitedContainer;
        fn remove_container(&self, id: &ContainerId);
        fn exec_sync(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, command: &[String]
        ) -> ExecSyncForecast;
        fn exec(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, command: &ExecCommand,
            found: &dyn Fn() -> Option<Surroundings>, now: Time
        ) -> Option<ExecResponse>;
        fn attach(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, heard: &AttachInput,
            found: &dyn Fn() -> Option<Surroundings>, now: Time
        ) -> Option<AttachResponse>;
        fn port_forward(
            &self, config: &PodSandboxConfig<'_>, running: &[RunningContainer<'_>], port: u16
        ) -> Result<PortListener, RuntimeError>;
        fn datagram(
            &self, config: &PodSandboxConfig<'_>, running: &[RunningContainer<'_>], asked: &Datagram<'_>
        ) -> Result<Option<Vec<u8>>, RuntimeError>;
        fn listener_problems(&self, pod: &Pod) -> Vec<String>;
        fn probe_forecast(&self, probed: &ProbedContainer<'_>, probe: &Probe) -> ProbeForecast;
        fn log_grows(&self, id: &ContainerId) -> tokio::sync::watch::Receiver<()>;
        fn container_log(
            &self, config: &ContainerConfig<'_>, id: &ContainerId, started_at: Time, until: Time
        ) -> Vec<LogLine>;
    }
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"wants": "greeting"}}})
}

async fn greeting(client: &Client, name: &str) -> Result<Value, Status> {
    Ok(client.get(&CONFIG_MAPS, "default", name).await?.to_value()["data"]["greeting"].take())
}

/// Makes a ConfigMap, and looks what becomes of it.
async fn greets(cluster: &Cluster, name: &str, expected: Option<&str>) -> Result<(), Box<dyn Error>> {
    cluster.client().create(&CONFIG_MAPS, "default", map(name)).await?;
    cluster.settled().await?;
    assert_eq!(greeting(&cluster.client(), name).await?.as_str(), expected);
    Ok(())
}
