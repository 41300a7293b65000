//! `kubarium component list`, `stop`, `start`

use clap::{Args, Subcommand};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::WhichCluster;
use super::{Failure, say};
use crate::cluster::ComponentState;

/// Stop and start the components of a cluster, or single controllers.
#[derive(Subcommand)]
pub enum ComponentCommand {
    /// List the components, and whether each runs.
    #[command(alias = "ls")]
    List(WhichCluster),
    /// Stop components: kube-scheduler, kubelet/node-1, kube-controller-manager/deployment.
    Stop(WhichComponents),
    /// Start components again.
    Start(WhichComponents),
}

/// Which of them.
#[derive(Args)]
pub struct WhichComponents {
    /// Their names.
    #[arg(required = true, value_name = "COMPONENT")]
    pub names: Vec<String>,
    #[command(flatten)]
    which: WhichCluster,
}

#[derive(Deserialize)]
struct Listed {
    components: Vec<ComponentState>,
}

impl ComponentCommand {
    /// Asks for it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            ComponentCommand::List(which) => {
                let listed: Listed = which.ask(Method::GET, "/components", &Value::Null)?;
                listed.components.iter().for_each(|component| say(line(component)));
                Ok(())
            }
            ComponentCommand::Stop(components) => components.each("stop", "stopped"),
            ComponentCommand::Start(components) => components.each("start", "started"),
        }
    }
}

impl WhichComponents {
    fn each(&self, verb: &str, done: &str) -> Result<(), Failure> {
        self.names.iter().try_for_each(|name| {
            let path = format!("/components/{verb}");
            self.which.ask::<Value>(Method::POST, &path, &json!({"name": name}))?;
            say(format!("{done} {name}"));
            Ok(())
        })
    }
}

fn line(component: &ComponentState) -> String {
    format!("{:<8} {}", if component.running { "running" } else { "stopped" }, component.name)
}
