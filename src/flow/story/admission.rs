//! Refusals by an admission webhook or an admission policy that somebody has set up: who said no, and who
//! can do what about it.

use std::collections::BTreeMap;

use super::fold_words::verb;
use super::own::OwnObjects;
use super::target::RequestTarget;
use super::units::{Unit, UnitKind};
use crate::parts::CalledWebhook;
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::words::subject;
use golang::object_key::object_key;

/// The plugins that ask what somebody has set up.
const WEBHOOKS: [&str; 2] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];
const MUTATING_POLICY: &str = "MutatingAdmissionPolicy";
const POLICIES: [&str; 2] = [MUTATING_POLICY, "ValidatingAdmissionPolicy"];

/// What the words begin with of a policy that could not be asked, whatever the object.
const NOT_ASKED: [&str; 3] = ["expression '", "failed to configure ", "no params found"];

/// A write that admission refused.
struct GatedWrite<'a> {
    at: StepId,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
    unit: &'a Unit<'a>,
    /// For which object a controller wanted it.
    made_for: Option<&'a str>,
    plugin: &'a str,
    why: &'a str,
}

/// By whom, for whom and of what a write is, and whether it is a deletion: the last of each counts. What a
/// controller makes has a new name each time.
type WriteOf<'a> = (&'a str, Option<&'a str>, &'a str, &'a str, &'a str, bool);

/// A line for each webhook and each policy that said no, as long as the same one has not written the object
/// since, and it is still there.
pub(super) fn refusals(units: &[Unit<'_>], own: &OwnObjects<'_>) -> Vec<String> {
    let is_meant = |write: &GatedWrite<'_>| {
        own.has(&object_key(write.namespace, write.name)) || write.made_for.is_some_and(|of| own.has(of))
    };
    let met: Vec<GatedWrite<'_>> =
        units.iter().filter_map(|unit| refused(unit, units)).filter(is_meant).collect();
    if met.is_empty() {
        return vec![];
    }
    let (written, deleted) = last_writes(units);
    let mut last = BTreeMap::new();
    for write in met {
        let is_later = |at: Option<&StepId>| at.is_some_and(|at| *at > write.at);
        let is_deleted = is_later(deleted.get(&(write.resource, write.namespace, write.name)));
        if is_deleted || is_later(written.get(&write.of())) {
            continue;
        }
        if let Some((gate, line)) = write.told() {
            last.insert(gate, (write.at, line));
        }
    }
    let mut told: Vec<(StepId, String)> = last.into_values().collect();
    told.sort();
    told.into_iter().map(|(_, line)| line).collect()
}

type LastWrites<'a> = (BTreeMap<WriteOf<'a>, StepId>, BTreeMap<(&'a str, &'a str, &'a str), StepId>);

/// When each was written last, and deleted.
fn last_writes<'a>(units: &'a [Unit<'a>]) -> LastWrites<'a> {
    let mut writes = LastWrites::default();
    for unit in units {
        for step in &unit.steps {
            let Step::Stored { resource, namespace, name, operation, .. } = &step.step else { continue };
            if *operation == WriteOperation::Delete {
                writes.1.insert((resource, namespace, name), step.id);
            }
            writes.0.insert(write_of(unit, made_for(unit, units), resource, namespace, name), step.id);
        }
    }
    writes
}

fn write_of<'a>(
    unit: &Unit<'a>,
    made_for: Option<&'a str>,
    resource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> WriteOf<'a> {
    let name = if made_for.is_some() { "" } else { name };
    (unit.who(), made_for, resource, namespace, name, is_deletion(unit))
}

fn is_deletion(unit: &Unit<'_>) -> bool {
    matches!(&unit.first().step, Step::RequestReceived { verb, .. } if verb.starts_with("delete"))
}

/// The key whose reconcile asked for it.
fn made_for<'a>(unit: &Unit<'a>, units: &[Unit<'a>]) -> Option<&'a str> {
    units[unit.parent?].steps.iter().find_map(|step| match &step.step {
        Step::ReconcileStarted { key, .. } => Some(&**key),
        _ => None,
    })
}

fn refused<'a>(unit: &'a Unit<'a>, units: &[Unit<'a>]) -> Option<GatedWrite<'a>> {
    if unit.kind != UnitKind::Request {
        return None;
    }
    let plugin = unit.steps.iter().find_map(|step| match &step.step {
        Step::Denied { plugin } => Some(&**plugin),
        _ => None,
    })?;
    unit.steps.iter().find_map(|step| match &step.step {
        Step::Refused { resource, namespace, name, why, .. } => {
            let (at, made_for) = (step.id, made_for(unit, units));
            Some(GatedWrite { at, resource, namespace, name, unit, made_for, plugin, why })
        }
        _ => None,
    })
}

impl<'a> GatedWrite<'a> {
    fn of(&self) -> WriteOf<'a> {
        write_of(self.unit, self.made_for, self.resource, self.namespace, self.name)
    }

    /// Who said no, and the line about it; nothing of plugins that nobody has set up.
    fn told(&self) -> Option<(String, String)> {
        if POLICIES.contains(&self.plugin) {
            return Some(self.by_policy());
        }
        WEBHOOKS.contains(&self.plugin).then(|| self.by_webhook()).flatten()
    }

    /// The webhook that is told of; of those that were asked beside it nobody has heard.
    fn webhook(&self) -> Option<&'a CalledWebhook> {
        let said_no = || {
            self.unit.steps.iter().filter_map(|step| match &step.step {
                Step::WebhookCalled(called) if &*called.verdict != "allowed it" => Some(&**called),
                _ => None,
            })
        };
        let is_told = |called: &&CalledWebhook| self.why.contains(&format!("webhook {:?}", called.webhook));
        said_no().find(is_told).or_else(|| said_no().next_back())
    }

    fn by_webhook(&self) -> Option<(String, String)> {
        let CalledWebhook { webhook, configuration, verdict, .. } = self.webhook()?;
        let (of, delete) = match configuration.split_once(' ') {
            Some((kind, name)) => (
                format!(" of {configuration}"),
                format!(" (kubectl delete {} {name})", kind.to_ascii_lowercase()),
            ),
            None => Default::default(),
        };
        let gate = format!("the webhook {webhook}{of}");
        let line = if let Some(why) = verdict.strip_prefix(&format!("failed calling webhook {webhook:?}: ")) {
            format!(
                "{gate} gives no valid answer ({why}), and its failurePolicy is Fail: nothing that its rules \
                 match can be written until it answers, its failurePolicy is Ignore, or the configuration \
                 goes{delete}"
            )
        } else if verdict.ends_with(" does not support dry run") {
            format!(
                "{gate} may have side effects, and is not asked in a dry run: {} has to write without one, \
                 or whoever keeps the configuration has to say by sideEffects that there are none",
                self.who()
            )
        } else {
            let why = match verdict.split_once(" denied the request") {
                Some((_, why)) => why.strip_prefix(": ").unwrap_or("it does not say why"),
                None => verdict,
            };
            format!(
                "{gate} forbids {} ({why}): {}whoever keeps the configuration has to change what the \
                 webhook is asked about (its rules, selectors and matchConditions)",
                self.what(),
                self.mended()
            )
        };
        Some((gate, line))
    }

    fn by_policy(&self) -> (String, String) {
        let Some(GatingPolicy { name, binding, why }) = GatingPolicy::named_in(self.why) else {
            let gate = format!("a {}", self.plugin);
            let line = format!(
                "{gate} forbids {}: {}whoever keeps the policies has to change them or their bindings",
                self.what(),
                self.mended()
            );
            return (gate, line);
        };
        let gate = match binding {
            Some(binding) => format!("{} {name}, bound by {binding},", self.plugin),
            None => format!("{} {name}", self.plugin),
        };
        let of = self.plugin.to_ascii_lowercase();
        let line = if self.plugin == MUTATING_POLICY || NOT_ASKED.iter().any(|words| why.starts_with(words)) {
            let delete = binding.map(|binding| format!(" (kubectl delete {of}binding {binding})"));
            format!(
                "{gate} fails on {} ({why}), and its failurePolicy is Fail: what it fails on cannot be \
                 written until whoever keeps it has mended it, its failurePolicy is Ignore, or its binding \
                 goes{}",
                subject(self.resource, self.namespace, self.name),
                delete.unwrap_or_default()
            )
        } else {
            let or_binding = if binding.is_some() { " or the binding" } else { "" };
            format!(
                "{gate} forbids {} ({why}): {}whoever keeps the policy has to change it{or_binding} \
                 (kubectl edit {of} {name})",
                self.what(),
                self.mended()
            )
        };
        (gate, line)
    }

    /// As `that jane creates pods ns/a`.
    fn what(&self) -> String {
        let what = subject(self.resource, self.namespace, self.name);
        match &self.unit.first().step {
            Step::RequestReceived { verb: asked_for, path, .. } => {
                let subresource = RequestTarget::of(path).unwrap_or_default().subresource;
                format!("that {} {} {what}", self.who(), verb(asked_for, subresource))
            }
            _ => what,
        }
    }

    /// What whoever asked can do, before what others can.
    fn mended(&self) -> String {
        match self.made_for {
            _ if is_deletion(self.unit) => String::new(),
            Some(of) => format!("{of}, for which it is, has to ask for what is allowed, or "),
            None => format!("{} has to send what is allowed, or ", self.who()),
        }
    }

    /// Of a component its own name, which says enough.
    fn who(&self) -> &'a str {
        let who = self.unit.who();
        match &self.unit.first().step {
            Step::RequestReceived { user, .. } if !user.is_empty() => user.rsplit(':').next().unwrap_or(user),
            _ => who,
        }
    }
}

/// The policy that a refusal names.
#[derive(Debug, PartialEq, Eq)]
struct GatingPolicy<'a> {
    name: &'a str,
    binding: Option<&'a str>,
    why: &'a str,
}

impl<'a> GatingPolicy<'a> {
    /// By upstream's words: `policy 'a' with binding 'b' denied request: why`.
    fn named_in(words: &'a str) -> Option<GatingPolicy<'a>> {
        let (gate, why) = words.split_once(" denied request: ")?;
        let (_, gate) = gate.split_once("olicy '")?;
        let (name, bound) = gate.split_once('\'')?;
        let binding = bound.strip_prefix(" with binding '").and_then(|rest| rest.strip_suffix('\''));
        Some(GatingPolicy { name, binding, why })
    }
}

#[cfg(test)]
mod tests;
