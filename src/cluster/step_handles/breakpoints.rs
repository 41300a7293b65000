//! What somebody who adds a breakpoint means: resources by any name that kubectl knows, and nothing that
//! never happens.

use std::sync::Arc;

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

    /// What a breakpoint is called that is named as somebody might have added it: `write po` is `write pods`.
    pub(super) fn breakpoint_called(&self, name: &str) -> Arc<str> {
        let mut words = name.splitn(3, ' ');
        let stage = words.next().and_then(|word| HeldStage::ALL.into_iter().find(|one| one.name() == word));
        let mut next = || words.next().unwrap_or_default().into();
        let asked = stage.map(|stage| Breakpoint { stage, of: next(), object: next() });
        let meant = asked.and_then(|asked| self.meant(asked).ok());
        meant.map_or_else(|| name.into(), |meant| meant.name())
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
        if let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(short)) {
            return Ok((*name).to_owned());
        }
        if is_soon {
            return Ok(short.to_owned());
        }
        known.sort_unstable();
        let choices = choices("the controllers that have started are", short, &known);
        Err(Status::bad_request(format!("no controller {of:?} reconciles here; {choices}")))
    }

    /// As `ResourceQuota`, or one of the user's own.
    fn plugin_meant(&self, of: &str) -> Result<String, Status> {
        let own: Vec<&str> = self.config.admission.names().collect();
        let known: Vec<&str> = PLUGINS.iter().map(|entry| entry.name).chain(own.iter().copied()).collect();
        let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(of)) else {
            let choices = choices("the plugins are", of, &known);
            return Err(Status::bad_request(format!("there is no admission plugin {of:?}; {choices}")));
        };
        if own.contains(name) || self.config.apiserver.admission.is_enabled(name) {
            return Ok((*name).to_owned());
        }
        let how = format!("`kubarium up --enable-admission-plugins {name}` has it");
        Err(Status::bad_request(format!("the admission plugin {name} does not run here: {how}")))
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
