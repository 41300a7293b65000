//! `kubarium node list`, `add`, `remove`, `stop`, `start`, `reboot`, `shutdown`, `condition`,
//! `recover`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use http::Method;
use kubelet::node_group::NodeGroup;
use serde_json::{Value, json};

use super::asked::{WhichCluster, encoded};
use super::{Failure, say};

/// Simulated nodes: add and remove them, stop and start their kubelets, make them unwell.
#[derive(Subcommand)]
pub enum NodeCommand {
    /// List the nodes, and whether their kubelets run.
    #[command(alias = "ls")]
    List {
        #[command(flatten)]
        which: WhichCluster,
    },
    /// Add nodes, while the cluster runs.
    Add(Box<AddNodes>),
    /// Remove nodes: their kubelets end, and the nodes are deleted.
    #[command(alias = "rm")]
    Remove(NamedNodes),
    /// Stop kubelets: their nodes stay, and fall silent.
    Stop(NamedNodes),
    /// Start kubelets that were stopped.
    Start(NamedNodes),
    /// Start the machines of nodes again: what ran there is gone, and runs again as it may.
    Reboot(NamedNodes),
    /// Switch machines of nodes off; `kubarium node start` switches them on again.
    Shutdown {
        #[command(flatten)]
        nodes: NamedNodes,
        /// How long pods have to end before that, as 30s; without, they are just gone.
        #[arg(long, value_name = "DURATION")]
        grace_period: Option<String>,
        /// How much of that is for critical pods, which end last.
        #[arg(long, value_name = "DURATION", requires = "grace_period")]
        critical_grace_period: Option<String>,
    },
    /// Say that a node has a condition, as MemoryPressure, until it recovers.
    Condition(SayCondition),
    /// Let a node be well again.
    Recover {
        #[command(flatten)]
        which: WhichCluster,
        /// Its name.
        node: String,
        /// Only of this condition.
        #[arg(value_name = "CONDITION")]
        condition_type: Option<String>,
    },
}

/// Nodes by their names.
#[derive(Args)]
pub struct NamedNodes {
    #[command(flatten)]
    which: WhichCluster,
    /// Their names.
    #[arg(required = true, value_name = "NODE")]
    names: Vec<String>,
}

/// What a file says for itself.
const OF_ONE_GROUP: [&str; 8] =
    ["called", "count", "label", "taint", "zone", "capacity", "architecture", "kubelet_version"];

/// What to add.
#[derive(Args)]
pub struct AddNodes {
    #[command(flatten)]
    which: WhichCluster,
    /// A file of groups, as --node-config of `kubarium up` takes it.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = OF_ONE_GROUP)]
    filename: Option<PathBuf>,
    /// The node's name; with --count, what the names begin with.
    #[arg(value_name = "NODE", required_unless_present = "filename")]
    called: Option<String>,
    /// How many: NODE-1 and on.
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// A label: disk=ssd.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,
    /// A taint: dedicated=gpu:NoSchedule.
    #[arg(long, value_name = "TAINT")]
    taint: Vec<String>,
    /// The zones in which they are, in turns.
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    zone: Vec<String>,
    /// What they have: cpu=64, nvidia.com/gpu=8.
    #[arg(long, value_name = "RESOURCE=AMOUNT", value_parser = pair, value_delimiter = ',')]
    capacity: Vec<(String, String)>,
    /// As arm64.
    #[arg(long, value_name = "ARCH")]
    architecture: Option<String>,
    /// As v1.35.0.
    #[arg(long, value_name = "VERSION")]
    kubelet_version: Option<String>,
}

/// What a node is to say of itself.
#[derive(Args)]
pub struct SayCondition {
    #[command(flatten)]
    which: WhichCluster,
    /// Its name.
    node: String,
    /// MemoryPressure, DiskPressure, PIDPressure, Ready, NetworkUnavailable, or one of your own; with its
    /// status as Ready=Unknown.
    #[arg(value_name = "CONDITION")]
    condition_type: String,
    /// True, False or Unknown; else that of a node that is unwell.
    #[arg(long)]
    status: Option<String>,
    /// Why, in one word.
    #[arg(long)]
    reason: Option<String>,
    /// Why, for people.
    #[arg(long)]
    message: Option<String>,
}

impl NodeCommand {
    /// Asks the cluster.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            NodeCommand::List { which } => list(&which),
            NodeCommand::Add(add) => add.run(),
            NodeCommand::Remove(nodes) => nodes.each(Method::DELETE, "", &Value::Null, "removed"),
            NodeCommand::Stop(nodes) => nodes.each(Method::POST, "/stop", &Value::Null, "stopped"),
            NodeCommand::Start(nodes) => nodes.each(Method::POST, "/start", &Value::Null, "started"),
            NodeCommand::Reboot(nodes) => nodes.each(Method::POST, "/reboot", &Value::Null, "rebooted"),
            NodeCommand::Shutdown { nodes, grace_period, critical_grace_period } => {
                let grace =
                    json!({"gracePeriod": grace_period, "criticalGracePeriod": critical_grace_period});
                nodes.each(Method::POST, "/shutdown", &grace, "shuts down")
            }
            NodeCommand::Condition(condition) => condition.run(),
            NodeCommand::Recover { which, node, condition_type } => {
                let of = condition_type.map(|of| format!("?type={}", encoded(&of))).unwrap_or_default();
                let path = format!("/nodes/{}/conditions{of}", encoded(&node));
                which.ask::<Value>(Method::DELETE, &path, &Value::Null)?;
                say(format!("node/{node} is well"));
                Ok(())
            }
        }
    }
}

fn list(which: &WhichCluster) -> Result<(), Failure> {
    let answer: Value = which.ask(Method::GET, "/nodes", &Value::Null)?;
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
    let name = |node: &Value| node["name"].as_str().unwrap_or_default().to_owned();
    let width = nodes.iter().map(|node| name(node).len()).max().unwrap_or(0).max(4);
    say(format!("{:width$}   KUBELET", "NAME"));
    for node in &nodes {
        let kubelet = match (node["simulated"] == true, node["running"] == true) {
            (true, true) => "running",
            (true, false) => "stopped",
            (false, _) => "not simulated",
        };
        say(format!("{:width$}   {kubelet}", name(node)));
    }
    Ok(())
}

impl NamedNodes {
    fn each(self, method: Method, verb: &str, body: &Value, done: &str) -> Result<(), Failure> {
        for name in &self.names {
            let path = format!("/nodes/{}{verb}", encoded(name));
            self.which.ask::<Value>(method.clone(), &path, body)?;
            say(format!("node/{name} {done}"));
        }
        Ok(())
    }
}

impl AddNodes {
    fn run(self) -> Result<(), Failure> {
        let (which, groups) = self.groups()?;
        for group in groups {
            let body = serde_json::to_value(&group).map_err(|error| Failure::new("the group", error))?;
            let answer: Value = which.ask(Method::POST, "/nodes", &body)?;
            for name in answer["added"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                say(format!("node/{name} added"));
            }
        }
        Ok(())
    }

    fn groups(self) -> Result<(WhichCluster, Vec<NodeGroup>), Failure> {
        if let Some(file) = &self.filename {
            return Ok((self.which, read(file)?));
        }
        let group = json!({
            "name": self.called.unwrap_or_default(),
            "count": self.count,
            "labels": self.label.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "taints": self.taint,
            "zones": self.zone,
            "capacity": self.capacity.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "architecture": self.architecture.unwrap_or_default(),
            "kubeletVersion": self.kubelet_version.unwrap_or_default(),
        });
        let group: NodeGroup =
            serde_json::from_value(group).map_err(|error| Failure::new("the group", error))?;
        group.check().map_err(|why| Failure(why.0))?;
        Ok((self.which, vec![group]))
    }
}

impl SayCondition {
    fn run(self) -> Result<(), Failure> {
        let (condition_type, status) = said_of(&self.condition_type, self.status.as_deref())?;
        let body = json!({
            "type": condition_type,
            "status": status.unwrap_or_default(),
            "reason": self.reason.unwrap_or_default(),
            "message": self.message.unwrap_or_default(),
        });
        let path = format!("/nodes/{}/conditions", encoded(&self.node));
        self.which.ask::<Value>(Method::POST, &path, &body)?;
        let is = status.map(|status| format!("={status}")).unwrap_or_default();
        say(format!("node/{} has {condition_type}{is}", self.node));
        Ok(())
    }
}

/// A condition's type and its status, which may also be said as `Ready=False`.
fn said_of<'a>(condition: &'a str, status: Option<&'a str>) -> Result<(&'a str, Option<&'a str>), Failure> {
    match (condition.split_once('='), status) {
        (None, status) => Ok((condition, status)),
        (Some((of, is)), None) => Ok((of, Some(is))),
        (Some((of, is)), Some(_)) => {
            Err(Failure(format!("{condition} says a status already; say {of} --status {is} alone")))
        }
    }
}

/// The groups of a file.
pub fn read(file: &std::path::Path) -> Result<Vec<NodeGroup>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("cannot read the nodes in {}", file.display()), error))?;
    NodeGroup::read(&text).map_err(|why| Failure(format!("the nodes in {}: {why}", file.display())))
}

/// As `disk=ssd`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE, as disk=ssd")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::said_of;

    #[test]
    fn a_status_is_said_as_kubectl_shows_it_or_by_its_flag() {
        for (condition, status, said) in [
            ("MemoryPressure", None, ("MemoryPressure", None)),
            ("Ready", Some("Unknown"), ("Ready", Some("Unknown"))),
            ("Ready=False", None, ("Ready", Some("False"))),
        ] {
            assert_eq!(said_of(condition, status).unwrap(), said);
        }
        assert!(said_of("Ready=False", Some("True")).unwrap_err().0.contains("say Ready --status False"));
    }
}
