//! `kubarium time`: what a cluster's clock says, and to let it pass.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::asked::WhichCluster;
use super::{Failure, say};

/// Show a cluster's time, or let it pass.
#[derive(Subcommand)]
pub enum TimeCommand {
    /// Show what time it is in a cluster, and who wakes next.
    Now(WhichCluster),
    /// Let time pass in a cluster with a stepped clock, from wake to wake.
    Pass(Pass),
    /// Wait for a condition of an object; in a cluster with a stepped clock time passes meanwhile.
    Until(Until),
}

/// For clients in other processes, between one wake and the next.
#[derive(Args, Default)]
pub struct SettleFlags {
    /// After each wake at which something happened, wait until no client outside has asked for anything for
    /// so long, as 100ms.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub quiet: String,
    /// Users whose requests do not count for that, as of a dashboard that polls; may be given several times.
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    pub ignore: Vec<String>,
}

impl SettleFlags {
    /// What is asked for, with these.
    fn with(&self, mut body: Value) -> Value {
        (body["quiet"], body["ignore"]) = (json!(self.quiet), json!(self.ignore));
        body
    }
}

/// Let time pass.
#[derive(Args)]
pub struct Pass {
    /// How much, as 90s, 1h or 30d.
    pub duration: String,
    /// How to settle between wakes.
    #[command(flatten)]
    pub settle: SettleFlags,
    /// Which cluster.
    #[command(flatten)]
    pub which: WhichCluster,
}

/// Wait for a condition.
#[derive(Args)]
pub struct Until {
    /// Which object, as deploy/web; it may not be there yet.
    pub object: String,
    /// What is waited for, as kubectl wait --for takes it (condition=Ready, jsonpath={.status.phase}=Running,
    /// create, delete), or the type of a condition alone.
    #[arg(value_name = "CONDITION")]
    pub wanted: String,
    /// Its namespace; else that of kubectl's context.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE")]
    pub namespace: Option<String>,
    /// How much of the cluster's time it may take; else 30s of real time as kubectl wait, and 1h of time that
    /// passes in a cluster with a stepped clock.
    #[arg(long, visible_alias = "within", value_name = "DURATION")]
    pub timeout: Option<String>,
    /// How to settle between wakes.
    #[command(flatten)]
    pub settle: SettleFlags,
    /// Which cluster.
    #[command(flatten)]
    pub which: WhichCluster,
}

impl TimeCommand {
    /// Asks the cluster.
    pub fn run(self) -> Result<(), Failure> {
        let said = match &self {
            TimeCommand::Now(which) => which.ask(Method::GET, "/time", &Value::Null)?,
            TimeCommand::Pass(Pass { duration, settle, which }) => {
                which.ask(Method::POST, "/time/pass", &settle.with(json!({"duration": duration})))?
            }
            TimeCommand::Until(Until { object, wanted, namespace, timeout, settle, which }) => {
                let namespace = which.namespace(namespace.as_deref())?;
                let body =
                    json!({"object": object, "for": wanted, "namespace": namespace, "within": timeout});
                which.ask(Method::POST, "/time/until", &settle.with(body))?
            }
        };
        say(sentence(&self, &said));
        Ok(())
    }
}

/// As `2030-01-01T01:00:00Z; next, kubelet/node-1 wakes after 7.2s`.
fn sentence(asked: &TimeCommand, said: &Value) -> String {
    let mut text = said["now"].as_str().unwrap_or_default().to_owned();
    if let (TimeCommand::Pass(Pass { duration, .. }), Some(wakes)) = (asked, said["wakes"].as_u64()) {
        text = format!("{text}, {duration} later: somebody woke {wakes} times");
    }
    let Some(next) = said.get("next") else { return text };
    let who: Vec<&str> = next["who"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let who = if who.is_empty() { "somebody".into() } else { who.join(", ") };
    format!("{text}; next, {who} wakes after {}", next["after"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_wakes_next() {
        let which = || WhichCluster { cluster: None };
        let said = json!({"now": "2030-01-01T00:00:00Z", "next": {"after": "7s", "who": ["kubelet/node-1"]}});
        let now = sentence(&TimeCommand::Now(which()), &said);
        assert_eq!(now, "2030-01-01T00:00:00Z; next, kubelet/node-1 wakes after 7s");
        let pass =
            TimeCommand::Pass(Pass { duration: "1h".into(), settle: SettleFlags::default(), which: which() });
        let passed = sentence(&pass, &json!({"now": "2030-01-01T01:00:00Z", "wakes": 3}));
        assert_eq!(passed, "2030-01-01T01:00:00Z, 1h later: somebody woke 3 times");
    }
}
