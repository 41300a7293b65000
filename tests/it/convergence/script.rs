//! What happens to a cluster, drawn from a seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kubarium::apis::kind::Kind;
use kubarium::kinds::{CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, JOBS, SERVICES, STATEFUL_SETS};
use kubarium::{Cluster, DeleteOptions, Entropy, Fault, PatchType, Status};
use serde_json::{Value, json};

/// So many things happen.
const ACTIONS: usize = 14;
/// Faults last at most so long.
const LONGEST: u64 = 40;

/// What is there in the end: by resource and name, how many pods it wants.
pub(crate) type ThereInTheEnd = BTreeMap<(&'static str, String), u64>;

/// What happens, and what is to be there afterwards.
pub(crate) struct Happenings {
    chance: Entropy,
    expected: ThereInTheEnd,
    told: Vec<String>,
}

impl Happenings {
    /// That of a seed.
    pub(crate) fn new(seed: u64) -> Happenings {
        Happenings {
            chance: Entropy::seeded(seed ^ 0x7369_6d75),
            expected: ThereInTheEnd::new(),
            told: vec![],
        }
    }

    /// What happened.
    pub(crate) fn told(&self) -> &[String] {
        &self.told
    }

    /// What is to be there.
    pub(crate) fn expected(&self) -> &ThereInTheEnd {
        &self.expected
    }

    /// Does all of it.
    ///
    /// # Errors
    /// What the cluster refused, although it should not.
    pub(crate) async fn play(&mut self, cluster: &Cluster) -> Result<(), String> {
        for number in 0..ACTIONS {
            let done = match self.chance.below(8) {
                0..3 => self.create(cluster, number).await,
                3 => self.scale(cluster).await,
                4 => self.delete(cluster).await,
                5 => self.stop_or_start(cluster),
                _ => self.fault(cluster, number),
            };
            done.map_err(|status| status.message)?;
            let pause = Duration::from_millis(self.chance.below(20_000) as u64);
            cluster.pass(pause).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn create(&mut self, cluster: &Cluster, number: usize) -> Result<(), Status> {
        let resource = ["deployments", "statefulsets", "daemonsets", "jobs", "services", "configmaps"];
        let resource = resource[self.chance.below(6)];
        let (name, pods) = (format!("{resource}-{number}"), self.chance.below(4) as u64);
        self.told.push(format!("{resource} {name} is made, with {pods}"));
        cluster.client().create(kind(resource), "default", object(resource, &name, pods)).await?;
        self.expected.insert((resource, name), pods);
        Ok(())
    }

    fn any(&self, resources: &[&str]) -> Option<(&'static str, String)> {
        let fit: Vec<_> = self.expected.keys().filter(|(resource, _)| resources.contains(resource)).collect();
        (!fit.is_empty()).then(|| fit[self.chance.below(fit.len())].clone())
    }

    async fn scale(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let Some((resource, name)) = self.any(&["deployments", "statefulsets"]) else { return Ok(()) };
        let (pods, image) = (self.chance.below(5) as u64, ["nginx", "redis"][self.chance.below(2)]);
        self.told.push(format!("{resource} {name} has {pods} of {image}"));
        let container = json!({"name": "c", "image": image});
        let spec = json!({"replicas": pods, "template": {"spec": {"containers": [container]}}});
        let (client, merge) = (cluster.client(), PatchType::StrategicMerge);
        client.patch(kind(resource), "default", &name, merge, &json!({"spec": spec})).await?;
        self.expected.insert((resource, name), pods);
        Ok(())
    }

    async fn delete(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let all = ["deployments", "statefulsets", "daemonsets", "jobs", "services", "configmaps"];
        let Some((resource, name)) = self.any(&all) else { return Ok(()) };
        let policy = ["Background", "Foreground"][self.chance.below(2)];
        self.told.push(format!("{resource} {name} is deleted, {policy}"));
        let options = DeleteOptions { propagation_policy: Some(policy.into()), ..DeleteOptions::default() };
        cluster.client().delete(kind(resource), "default", &name, &options).await?;
        self.expected.remove(&(resource, name));
        Ok(())
    }

    fn stop_or_start(&mut self, cluster: &Cluster) -> Result<(), Status> {
        let all = cluster.component_states();
        let one = &all[self.chance.below(all.len())];
        self.told.push(format!("{} {}", if one.running { "stop" } else { "start" }, one.name));
        let done = match one.running {
            true => cluster.stop_component(&one.name),
            false => cluster.start_component(&one.name),
        };
        done.map_err(|error| Status::internal(error.to_string()))
    }

    fn fault(&mut self, cluster: &Cluster, number: usize) -> Result<(), Status> {
        let fault = match self.chance.below(7) {
            0 => Fault::answer(409).verb("update").verb("patch").probability(0.4),
            1 => Fault::lost_answer(500).verb("write").probability(0.2),
            2 => Fault::answer(503).probability(0.2),
            3 => Fault::close_watch(self.chance.below(3) as u64).count(20),
            4 => Fault::expire_watch(self.chance.below(3) as u64).count(5),
            5 => Fault::delay_events(Duration::from_millis(self.chance.below(5_000) as u64)),
            _ => Fault::duplicate_events(),
        };
        let users = ["system:kube-*", "system:node:*", "system:*"];
        let lasting = Duration::from_secs(1 + self.chance.below(LONGEST as usize) as u64);
        let fault = fault.user(users[self.chance.below(3)]).lasting(lasting);
        self.told.push(fault.to_string());
        let added = cluster.faults().add(fault.named(&format!("fault-{number}")));
        added.map(drop).map_err(|refusal| Status::internal(refusal.to_string()))
    }
}

pub(crate) fn kind(resource: &str) -> &'static Arc<Kind> {
    match resource {
        "deployments" => &DEPLOYMENTS,
        "statefulsets" => &STATEFUL_SETS,
        "daemonsets" => &DAEMON_SETS,
        "jobs" => &JOBS,
        "services" => &SERVICES,
        _ => &CONFIG_MAPS,
    }
}

/// Services select the pods of all Deployments.
pub(crate) fn object(resource: &str, name: &str, pods: u64) -> Value {
    let labels = json!({"name": name, "of": resource});
    let container = match resource {
        "jobs" => json!({"name": "c", "image": "busybox", "command": ["sh", "-c", "sleep 3"]}),
        _ => json!({"name": "c", "image": "nginx"}),
    };
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let selector = json!({"matchLabels": labels});
    let spec = match resource {
        "deployments" => json!({"replicas": pods, "selector": selector, "template": pod}),
        "statefulsets" => {
            json!({"serviceName": "x", "replicas": pods, "selector": selector, "template": pod})
        }
        "daemonsets" => json!({"selector": selector, "template": pod}),
        "jobs" => {
            let mut pod = pod;
            pod["spec"]["restartPolicy"] = "OnFailure".into();
            json!({"completions": pods + 1, "parallelism": 2, "template": pod})
        }
        "services" => json!({"selector": {"of": "deployments"}, "ports": [{"port": 80}]}),
        _ => return json!({"metadata": {"name": name}, "data": {"pods": pods.to_string()}}),
    };
    json!({"metadata": {"name": name}, "spec": spec})
}
