//! Conflicts: somebody was refused a write with 409, since somebody else was faster. Who that was, and what
//! helps now.

use std::collections::{BTreeMap, BTreeSet};

use super::fold_words::verb;
use super::own::OwnObjects;
use super::target::RequestTarget;
use super::units::{Unit, UnitKind};
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::words::subject;
use golang::object_key::object_key;

/// What a conflict is about, by the words of the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConflictKind {
    /// The object was written since it was read.
    Modified,
    /// It is not at the resourceVersion, or not the object, that was to be deleted.
    Precondition,
    /// Others own fields that an apply would change.
    Owned,
    /// The name is taken.
    Taken,
}

/// The object of a write: its resource, namespace and name.
type WrittenObject<'a> = (&'a str, &'a str, &'a str);

/// A write that was stored.
struct EarlierWrite<'a> {
    at: StepId,
    of: WrittenObject<'a>,
    unit: &'a Unit<'a>,
    revision: u64,
    operation: WriteOperation,
}

/// A write that was refused.
struct RefusedWrite<'a> {
    at: StepId,
    of: WrittenObject<'a>,
    unit: &'a Unit<'a>,
    kind: ConflictKind,
    why: &'a str,
}

/// A line for each conflict of a person that is not over: the same one has not written the object since, and
/// it is still there. Components try again by themselves.
pub(super) fn conflicts(units: &[Unit<'_>], own: &OwnObjects<'_>) -> Vec<String> {
    let is_there = |conflict: &RefusedWrite<'_>| {
        let (_, namespace, name) = conflict.of;
        own.has(&object_key(namespace, name))
    };
    let met: Vec<RefusedWrite<'_>> = units.iter().filter_map(refused).filter(is_there).collect();
    let objects: BTreeSet<WrittenObject<'_>> = met.iter().map(|conflict| conflict.of).collect();
    let of_those = |write: &EarlierWrite<'_>| objects.contains(&write.of);
    let writes: Vec<EarlierWrite<'_>> = units.iter().flat_map(stored).filter(of_those).collect();
    let mut last = BTreeMap::new();
    for conflict in met {
        if !writes.iter().any(|write| conflict.is_over(write)) {
            last.insert((conflict.unit.who(), conflict.of, conflict.kind), conflict);
        }
    }
    let mut told: Vec<RefusedWrite<'_>> = last.into_values().collect();
    told.sort_by_key(|conflict| conflict.at);
    told.iter().map(|conflict| conflict.words(&writes)).collect()
}

fn stored<'a>(unit: &'a Unit<'a>) -> impl Iterator<Item = EarlierWrite<'a>> {
    unit.steps.iter().filter_map(move |step| match &step.step {
        Step::Stored { resource, namespace, name, revision, operation, .. } => Some(EarlierWrite {
            at: step.id,
            of: (resource, namespace, name),
            unit,
            revision: *revision,
            operation: *operation,
        }),
        _ => None,
    })
}

fn refused<'a>(unit: &'a Unit<'a>) -> Option<RefusedWrite<'a>> {
    if unit.kind != UnitKind::Request || !unit.is_persons() {
        return None;
    }
    unit.steps.iter().find_map(|step| match &step.step {
        Step::Refused { resource, namespace, name, code: 409, why } => {
            let (of, kind) = ((&**resource, &**namespace, &**name), kind_of(why)?);
            // A quota that is counted meanwhile is another object.
            let is_of_it = kind == ConflictKind::Owned || why.contains(&format!("{name:?}"));
            (!name.is_empty() && is_of_it).then_some(RefusedWrite { at: step.id, of, unit, kind, why })
        }
        _ => None,
    })
}

/// By upstream's words.
fn kind_of(why: &str) -> Option<ConflictKind> {
    match why {
        why if why.starts_with("Apply failed with ") => Some(ConflictKind::Owned),
        why if why.ends_with(" already exists") => Some(ConflictKind::Taken),
        why if why.contains(" in the precondition (") => Some(ConflictKind::Precondition),
        why if why.contains("the object has been modified") => Some(ConflictKind::Modified),
        _ => None,
    }
}

impl RefusedWrite<'_> {
    /// Whether the object has gone since, or the same one has written it.
    fn is_over(&self, write: &EarlierWrite<'_>) -> bool {
        let is_same = write.unit.who() == self.unit.who()
            && (self.kind != ConflictKind::Owned || manager(write.unit) == manager(self.unit));
        write.of == self.of && write.at > self.at && (is_same || write.operation == WriteOperation::Delete)
    }

    /// The last write before that `is_it` is true of.
    fn before<'w, 'a>(
        &self,
        writes: &'w [EarlierWrite<'a>],
        is_it: impl Fn(&EarlierWrite<'_>) -> bool,
    ) -> Option<&'w EarlierWrite<'a>> {
        let before = writes.iter().filter(|write| write.of == self.of && write.at < self.at && is_it(write));
        before.max_by_key(|write| write.at)
    }

    fn words(&self, writes: &[EarlierWrite<'_>]) -> String {
        let (resource, namespace, name) = self.of;
        let what = subject(resource, namespace, name);
        let last = || {
            let last = self.before(writes, |_| true);
            last.map_or_else(|| "somebody else".to_owned(), EarlierWrite::words)
        };
        let who = self.unit.who();
        let made = || {
            let made = self.before(writes, |write| write.operation == WriteOperation::Create);
            made.map(|write| format!(": made by {}", write.words())).unwrap_or_default()
        };
        match self.kind {
            ConflictKind::Modified => format!(
                "{} was faster than {who} and wrote {what} meanwhile: {who} has to get it again, change what \
                 it is now, and {} it then; a patch without a resourceVersion is never too late",
                last(),
                self.asked_for()
            ),
            ConflictKind::Precondition if self.why.contains("the UID in the precondition") => format!(
                "{what} is not the object that {who} means{}; to delete this one: with its own uid, or \
                 without a precondition",
                made()
            ),
            ConflictKind::Precondition => format!(
                "{} was faster than {who} and wrote {what} meanwhile: {who} has to look whether it is still to \
                 go, and delete it with the resourceVersion that it has now, or without a precondition",
                last()
            ),
            ConflictKind::Owned => self.owned(&what, writes),
            ConflictKind::Taken if self.why.contains("object is being deleted") => {
                format!("{what} is being deleted, and its name free when it is gone")
            }
            ConflictKind::Taken => format!(
                "the name {what} is taken{}; change what is there (kubectl apply, replace or patch), delete it \
                 before, or take another name",
                made()
            ),
        }
    }

    fn owned(&self, what: &str, writes: &[EarlierWrite<'_>]) -> String {
        let owners: Vec<String> = owners(self.why)
            .into_iter()
            .map(|owner| match self.before(writes, |write| manager(write.unit) == Some(owner)) {
                Some(write) => format!("{owner:?} (written by {})", write.words()),
                None => format!("{owner:?}"),
            })
            .collect();
        format!(
            "fields of {what} are owned by {}: {} has to leave them out, set them as they are, or take them \
             over with --force-conflicts (force=true)",
            owners.join(" and "),
            self.unit.who()
        )
    }

    /// As `update`.
    fn asked_for(&self) -> &str {
        match &self.unit.first().step {
            Step::RequestReceived { verb, .. } => verb,
            _ => "write",
        }
    }
}

impl EarlierWrite<'_> {
    /// As `jane with kubectl-edit at revision 7`, or
    /// `replicaset-controller, which writes the status of it, at revision 7`.
    fn words(&self) -> String {
        let with = manager(self.unit).map(|manager| format!(" with {manager}")).unwrap_or_default();
        let Step::RequestReceived { user, verb: asked_for, path } = &self.unit.first().step else {
            return format!("somebody at revision {}", self.revision);
        };
        let who = if user.is_empty() { self.unit.who() } else { user.rsplit(':').next().unwrap_or(user) };
        let subresource = RequestTarget::of(path).unwrap_or_default().subresource;
        let part = match subresource {
            "" => String::new(),
            _ => format!(", which {} it,", verb(asked_for, subresource)),
        };
        format!("{who}{with}{part} at revision {}", self.revision)
    }
}

/// As whom a person writes: as which the request says, else as its client is called.
fn manager<'a>(unit: &'a Unit<'_>) -> Option<&'a str> {
    unit.steps.iter().find_map(|step| match &step.step {
        Step::Routed(request) => {
            let said = request.options.split('&').find_map(|option| option.strip_prefix("fieldManager="));
            said.or(request.client.split('/').next().filter(|client| !client.is_empty()))
        }
        _ => None,
    })
}

/// The names in `conflict with "a" using v1: .data.a`, each once.
fn owners(why: &str) -> Vec<&str> {
    let mut owners = Vec::new();
    for rest in why.split(" with \"").skip(1) {
        let owner = rest.split('"').next().unwrap_or_default();
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    owners
}

#[cfg(test)]
mod tests;
