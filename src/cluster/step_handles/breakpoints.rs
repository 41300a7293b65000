//! What somebody who adds a breakpoint means: resources by any name that kubectl knows, and nothing that
//! never happens.

use super::super::elections::CONTROLLER_MANAGER;
use super::super::inside::Inside;
use apimachinery::status::Status;
use apiserver::admission::plugins::PLUGINS;
use component_base::flags::choices;
use controllers::queue_names::controller_of;
use flow::{Breakpoint, HeldStage};

/// Requests that are held, by their verbs.
const HELD_VERBS: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

impl Inside {
    /// The breakpoint as steps will be called.
    ///
    /// # Errors
    /// Refused, if the cluster would never stand still there.
    pub(super) fn meant(&self, asked: Breakpoint) -> Result<Breakpoint, Status> {
        let of = &*asked.of;
        if of.is_empty() {
            return Ok(asked);
        }
        let of = match asked.stage {
            HeldStage::Write | HeldStage::Watch => self.resource_meant(of)?,
            HeldStage::Scheduling | HeldStage::Sync if self.resource_meant(of)? == "pods" => {
                "pods".to_owned()
            }
            HeldStage::Scheduling | HeldStage::Sync => {
                let stage = asked.stage.name();
                return Err(Status::bad_request(format!("{stage} is about pods alone, and never of {of:?}")));
            }
            HeldStage::Request => verb_meant(of)?,
            HeldStage::Reconcile => self.controller_meant(of)?,
            HeldStage::Admission => self.plugin_meant(of)?,
        };
        Ok(Breakpoint { of: of.into(), ..asked })
    }

    /// As `deployment`: only where a controller has started, its reconciles can be held.
    fn controller_meant(&self, of: &str) -> Result<String, Status> {
        let short = of.strip_suffix("-controller").unwrap_or(of);
        let queues = self.running.metrics(CONTROLLER_MANAGER).map(|metrics| metrics.queue_names());
        let queues = queues.unwrap_or_default();
        // They may all be about to start.
        let is_soon = queues.is_empty() && controllers::manager::controller_named(of).is_some();
        let mut known: Vec<&str> = queues.iter().map(|queue| controller_of(queue)).collect();
        known.extend(self.config.controllers.names());
        if is_soon || known.iter().any(|name| name.eq_ignore_ascii_case(short)) {
            return Ok(short.to_owned());
        }
        known.sort_unstable();
        let choices = choices("the controllers that have started are", short, &known);
        Err(Status::bad_request(format!("no controller {of:?} reconciles here; {choices}")))
    }

    /// As `ResourceQuota`, or one of the user's own.
    fn plugin_meant(&self, of: &str) -> Result<String, Status> {
        let own = self.config.admission.names();
        let known: Vec<&str> = PLUGINS.iter().map(|entry| entry.name).chain(own).collect();
        if known.iter().any(|name| name.eq_ignore_ascii_case(of)) {
            return Ok(of.to_owned());
        }
        let choices = choices("the plugins are", of, &known);
        Err(Status::bad_request(format!("there is no admission plugin {of:?}; {choices}")))
    }

    /// As `deployments.apps`; what is of a group may be defined later.
    fn resource_meant(&self, of: &str) -> Result<String, Status> {
        match self.scheme.named(of) {
            Some(kind) => Ok(kind.resource().to_string()),
            None if of.contains('.') => Ok(of.to_lowercase()),
            None => Err(Status::bad_request(format!(
                "no resource {of:?} is served here: kubectl api-resources lists those that are; one that is to be \
                 defined goes by its whole name, as widgets.example.com"
            ))),
        }
    }
}

fn verb_meant(of: &str) -> Result<String, Status> {
    let of = of.to_lowercase();
    if HELD_VERBS.contains(&&*of) {
        return Ok(of);
    }
    Err(Status::bad_request(format!("no request is held by {of:?}: say one of {}", HELD_VERBS.join(", "))))
}
