//! What somebody who adds a breakpoint means: resources by any name that kubectl knows, and nothing that
//! never happens.

use super::super::inside::Inside;
use apimachinery::status::Status;
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
            HeldStage::Reconcile => of.strip_suffix("-controller").unwrap_or(of).to_owned(),
            HeldStage::Admission => of.to_owned(),
        };
        Ok(Breakpoint { of: of.into(), ..asked })
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
