//! `Trace`: the steps that one object's writes led to, and the steps that led to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::recorded::{Recorded, StepId};
use super::step::{Step, WriteOperation};
use super::traffic::JudgedTraffic;
use super::uid::Uid;

/// Whose story is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracedObject<'a> {
    /// As in errors: `deployments.apps`, `pods`.
    pub resource: &'a str,
    /// Empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The object's name. Empty: the refused requests about the resource that name no object, as lists,
    /// watches, and creates whose body nobody could read.
    pub name: &'a str,
    /// The beginning of the uid of one of several objects of that name; empty: the newest.
    pub uid: &'a str,
}

/// The story of one object, in the order in which it happened. What `/flowz` answers, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trace {
    /// As `deployments.apps default/web`.
    pub subject: String,
    /// The object's uid; none where only refused attempts are known of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// The other objects of that name, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Life>,
    /// How many refused requests about the resource are remembered that name no object.
    pub unnamed_refusals: usize,
    /// How many steps the record has forgotten, of whatever it was.
    pub forgotten: u64,
    /// Whether the beginning of this story is among them.
    pub begins_forgotten: bool,
    /// When its first step was, as RFC 3339 has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub began: String,
    /// When that was, in microseconds since 1970.
    pub began_unix_microseconds: i64,
    /// How long after its first step it was told.
    pub now_microseconds: u64,
    /// As what and under which keys objects are stored, by resource; as far as whoever answers knows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<String, StoragePlace>,
    /// Since when the informers that heard of the object hold its resource, as far as that is remembered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedResource>,
    /// Ordered by id.
    pub steps: Vec<TraceStep>,
    /// How many steps were left out, since nobody wanted them.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Of a pod: who asked it and whom it asked, where NetworkPolicies had something to say of that. Of a
    /// NetworkPolicy: what it let in and kept out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<JudgedTraffic>,
}

/// How objects of a resource are stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePlace {
    /// What their keys begin with, as `/registry/deployments/`.
    pub prefix: String,
    /// Their storage version, as `apps/v1`.
    pub version: String,
}

/// The last list by which an informer got to know all objects of a resource; it is about none of them alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedResource {
    /// As `kube-scheduler`.
    pub component: Arc<str>,
    /// As `pods`.
    pub resource: Arc<str>,
    /// What happened after this revision came by a watch.
    pub revision: u64,
    /// The [`Step::Listed`].
    pub step: StepId,
    /// The indices of its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indices: Option<Arc<str>>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What the trace of everything is about.
const EVERYTHING: &str = "the whole cluster";

impl Trace {
    /// Whether it is about no object more than about another.
    pub(crate) fn is_of_everything(&self) -> bool {
        self.subject == EVERYTHING
    }
}

/// One of several objects that had the same name, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Life {
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<Uid>,
    /// The first step that is remembered of it.
    pub first: StepId,
    /// Whether its end is remembered.
    pub deleted: bool,
}

/// One step of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceStep {
    /// Its number in the cluster's record.
    pub id: StepId,
    /// The step that led to it. One that is not in the trace was not remembered any more, or led elsewhere
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<StepId>,
    /// Microseconds since the first step of the trace.
    pub at_microseconds: u64,
    /// What happened.
    #[serde(flatten)]
    pub step: Step,
}

/// Builds the trace of `subject` from a copy of the record whose first step has the id `first`; and says when
/// it begins.
pub(super) fn of(first: u64, steps: Vec<Recorded>, subject: &TracedObject<'_>) -> (Duration, Trace) {
    let record = Causes::of(first, steps);
    let mut lives = record.lives(subject);
    let is_wanted = |life: &Mentions| life.uid.is_some_and(|uid| uid.to_string().starts_with(subject.uid));
    let chosen = match subject.uid {
        "" => lives.len().checked_sub(1),
        _ => lives.iter().rposition(is_wanted),
    };
    let life = chosen.map(|at| lives.remove(at)).unwrap_or_default();
    let mut wanted = BTreeSet::new();
    for (position, mention) in life.steps.iter().enumerate() {
        record.tell(*mention, position == 0, subject, life.uid, &mut wanted);
    }
    let TracedObject { resource, namespace, name, .. } = subject;
    let key = if namespace.is_empty() { (*name).to_owned() } else { format!("{namespace}/{name}") };
    let nameless = TracedObject { name: "", ..*subject };
    let is_unnamed = |step: &Step| nameless.is_refusal(step) && !matches!(step, Step::PassedOn(_));
    let unnamed = record.steps.iter().filter(|recorded| is_unnamed(&recorded.step));
    let trace = Trace {
        subject: format!("{resource} {key}"),
        uid: life.uid,
        others: lives.iter().filter_map(Mentions::life).collect(),
        unnamed_refusals: unnamed.count(),
        forgotten: first - 1,
        begins_forgotten: first > 1 && record.lacks_beginning(&life),
        listed: record.listed(&wanted),
        steps: record.collect(&wanted),
        ..Trace::default()
    };
    (record.start(&wanted), trace)
}

/// The trace of everything, and when it begins.
pub(super) fn whole(first: u64, steps: Vec<Recorded>) -> (Duration, Trace) {
    let start = steps.first().map(|recorded| recorded.at).unwrap_or_default();
    let trace = Trace {
        subject: EVERYTHING.into(),
        forgotten: first - 1,
        begins_forgotten: first > 1,
        steps: all(first, steps),
        ..Trace::default()
    };
    (start, trace)
}

/// Every step, whatever it is about.
pub(super) fn all(first: u64, steps: Vec<Recorded>) -> Vec<TraceStep> {
    let record = Causes::of(first, steps);
    let all = (first..first + record.steps.len() as u64).collect();
    record.collect(&all)
}

impl TracedObject<'_> {
    /// The object's uid and what was done to it, of a write to an object of the name.
    fn written(&self, step: &Step) -> Option<(Option<Uid>, WriteOperation)> {
        match step {
            Step::Stored { resource, namespace, name, uid, operation, .. } if !self.name.is_empty() => {
                let is_it =
                    (&**resource, &**namespace, &**name) == (self.resource, self.namespace, self.name);
                is_it.then_some((*uid, *operation))
            }
            _ => None,
        }
    }

    /// Whether it is an attempt on the name that stored nothing, or one that another server answered. Without
    /// a name those count that are about all namespaces, too.
    fn is_refusal(&self, step: &Step) -> bool {
        let (resource, namespace, name) = match step {
            Step::Refused { resource, namespace, name, .. }
            | Step::DryRun { resource, namespace, name, .. } => (resource, namespace, name),
            Step::PassedOn(request) => (&request.resource, &request.namespace, &request.name),
            _ => return false,
        };
        let is_near = self.name.is_empty() && (namespace.is_empty() || self.namespace.is_empty());
        let is_there = **namespace == *self.namespace || is_near;
        **resource == *self.resource && **name == *self.name && is_there
    }

    /// Whether a kubelet said by an Event how its node is: of that it is told by nobody.
    fn is_said_by_kubelet(&self, recorded: &Recorded) -> bool {
        let Step::EventRecorded { component, object, .. } = &recorded.step else { return false };
        let is_uncaused = recorded.cause == StepId::NONE && &**component == "kubelet";
        is_uncaused && self.resource == "nodes" && **object == *self.name
    }

    /// Whether the scheduler took the pod up: it may do so because of somebody else's change.
    fn is_attempt(&self, step: &Step) -> bool {
        let Step::SchedulingAttempt { pod } = step else { return false };
        let key = pod.split_once('/').unwrap_or(("", pod));
        self.resource == "pods" && key == (self.namespace, self.name)
    }
}

/// The steps that mention one of several objects of a name.
#[derive(Default)]
struct Mentions {
    uid: Option<Uid>,
    steps: Vec<u64>,
    is_deleted: bool,
}

impl Mentions {
    /// None of mere attempts.
    fn life(&self) -> Option<Life> {
        let first = StepId(*self.steps.first()?);
        self.uid.map(|uid| Life { uid: Some(uid), first, deleted: self.is_deleted })
    }
}

/// The record with its causes, in both directions.
struct Causes {
    first: u64,
    steps: Vec<Recorded>,
    effects: HashMap<u64, Vec<u64>>,
}

impl Causes {
    /// A step that saw a revision is caused by the write that made it. That edge is drawn here and not when
    /// the step is recorded: a watch may deliver a change before the writer was told of its success.
    fn of(first: u64, mut steps: Vec<Recorded>) -> Causes {
        let mut stored = HashMap::new();
        for (id, recorded) in (first..).zip(&steps) {
            if let Step::Stored { revision, .. } = recorded.step {
                stored.insert(revision, id);
            }
        }
        let mut effects: HashMap<u64, Vec<u64>> = HashMap::new();
        for (id, recorded) in (first..).zip(&mut steps) {
            if recorded.cause == StepId::NONE {
                let write = recorded.step.revision_seen().and_then(|revision| stored.get(&revision));
                recorded.cause = StepId(write.copied().unwrap_or_default());
            }
            if recorded.cause != StepId::NONE {
                effects.entry(recorded.cause.0).or_default().push(id);
            }
        }
        Causes { first, steps, effects }
    }

    fn get(&self, id: u64) -> Option<&Recorded> {
        self.steps.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// The objects of the name, oldest first. What names no uid belongs to the object that led to it, else to
    /// the one that is there at the time; when none is, to the next one, which it may have been meant to
    /// make, else to the last.
    fn lives(&self, subject: &TracedObject<'_>) -> Vec<Mentions> {
        let (mut lives, mut loose): (Vec<Mentions>, Vec<u64>) = (Vec::new(), Vec::new());
        for (id, recorded) in (self.first..).zip(&self.steps) {
            if let Some((uid, operation)) = subject.written(&recorded.step) {
                let at = lives.iter().rposition(|life| life.uid == uid).unwrap_or_else(|| {
                    lives.push(Mentions { uid, steps: std::mem::take(&mut loose), is_deleted: false });
                    lives.len() - 1
                });
                lives[at].steps.push(id);
                lives[at].is_deleted |= operation == WriteOperation::Delete;
            } else if subject.is_refusal(&recorded.step) || subject.is_attempt(&recorded.step) {
                let led_by = self.led_by(id, subject);
                let at = led_by.and_then(|uid| lives.iter().rposition(|life| life.uid == uid));
                let is_there = lives.last().is_some_and(|life| !life.is_deleted);
                match at.or(lives.len().checked_sub(1).filter(|_| is_there)) {
                    Some(at) => lives[at].steps.push(id),
                    None => loose.push(id),
                }
            } else if subject.is_said_by_kubelet(recorded)
                && let Some(there) = lives.last_mut().filter(|life| !life.is_deleted)
            {
                // What it said before its node was there is of a node that is well.
                there.steps.push(id);
            }
        }
        match lives.last_mut() {
            Some(last) => last.steps.append(&mut loose),
            None if loose.is_empty() => {}
            None => lives.push(Mentions { steps: loose, ..Mentions::default() }),
        }
        lives
    }

    /// The uid of the object of the name whose coming or changing led to a step. Its going is no reason to do
    /// something to it.
    fn led_by(&self, step: u64, subject: &TracedObject<'_>) -> Option<Option<Uid>> {
        let mut at = step;
        loop {
            let recorded = self.get(at)?;
            if let Some((uid, operation)) = subject.written(&recorded.step) {
                return Some(uid).filter(|_| operation != WriteOperation::Delete);
            }
            at = recorded.cause.cause()?.0;
        }
    }

    /// Whether something came before the first step that is remembered of it.
    fn lacks_beginning(&self, life: &Mentions) -> bool {
        let first = life.steps.first().and_then(|id| self.get(*id));
        first.is_some_and(|first| match &first.step {
            Step::Stored { operation, .. } if *operation != WriteOperation::Create => true,
            _ => first.cause != StepId::NONE && self.get(first.cause.0).is_none(),
        })
    }

    /// Wants what led to a mention of the object, and all that came of it.
    fn tell(
        &self,
        mention: u64,
        is_first: bool,
        subject: &TracedObject<'_>,
        uid: Option<Uid>,
        wanted: &mut BTreeSet<u64>,
    ) {
        let is_attempt = self.get(mention).is_some_and(|recorded| subject.is_attempt(&recorded.step));
        // The first write is told from its very beginning, the others from their own request on: what lies
        // before that is part of the first one's story or of another object's.
        let origin = self.origin(mention, is_first, wanted);
        // Of a change that woke the pod only that it did is told.
        let from = if is_attempt { mention } else { origin };
        let is_other = |step: &Step| subject.written(step).is_some_and(|(other, _)| other != uid);
        self.follow(from, &is_other, wanted);
    }

    /// Walks back from a step to its request, or with `all_the_way` to what nobody caused; what is passed on
    /// the way is wanted. Returns the step's request (or the earliest remembered step of it).
    fn origin(&self, step: u64, all_the_way: bool, wanted: &mut BTreeSet<u64>) -> u64 {
        let mut request = step;
        let mut at = step;
        let mut in_request = true;
        while let Some(recorded) = self.get(at) {
            let seen_before = !wanted.insert(at) && at != step;
            if in_request {
                request = at;
            }
            in_request &= !matches!(recorded.step, Step::RequestReceived { .. });
            let goes_on = in_request || all_the_way || self.is_question(recorded.cause.0);
            if recorded.cause == StepId::NONE || seen_before || !goes_on {
                break;
            }
            at = recorded.cause.0;
        }
        request
    }

    /// Whether a client asked there what is served: that is part of the request that it led to.
    fn is_question(&self, step: u64) -> bool {
        self.get(step).is_some_and(|recorded| matches!(recorded.step, Step::Discovered { .. }))
    }

    /// Everything that came of `origin`, up to where another object of the name begins.
    fn follow(&self, origin: u64, is_other: &impl Fn(&Step) -> bool, wanted: &mut BTreeSet<u64>) {
        let mut pending = vec![origin];
        let mut followed = BTreeSet::new();
        while let Some(id) = pending.pop() {
            if self.get(id).is_some_and(|recorded| is_other(&recorded.step)) {
                continue;
            }
            if followed.insert(id) {
                wanted.insert(id);
                pending.extend(self.effects.get(&id).into_iter().flatten());
            }
        }
    }

    /// The last list of each informer that heard of something in these steps.
    fn listed(&self, wanted: &BTreeSet<u64>) -> Vec<ListedResource> {
        let heard = wanted.iter().filter_map(|id| match &self.get(*id)?.step {
            Step::InformerUpdated { component, resource, .. } => Some((component, resource)),
            _ => None,
        });
        let heard: BTreeSet<(&Arc<str>, &Arc<str>)> = heard.collect();
        let mut last = BTreeMap::new();
        for (id, recorded) in (self.first..).zip(&self.steps) {
            if let Step::Listed { component, resource, revision, indices, .. } = &recorded.step
                && heard.contains(&(component, resource))
            {
                last.insert((component, resource), (*revision, StepId(id), indices.clone()));
            }
        }
        let told = last.into_iter().map(|((component, resource), (revision, step, indices))| {
            let (component, resource) = (component.clone(), resource.clone());
            ListedResource { component, resource, revision, step, indices }
        });
        told.collect()
    }

    fn start(&self, wanted: &BTreeSet<u64>) -> Duration {
        wanted.first().and_then(|id| self.get(*id)).map(|recorded| recorded.at).unwrap_or_default()
    }

    fn collect(&self, wanted: &BTreeSet<u64>) -> Vec<TraceStep> {
        let start = self.start(wanted);
        let step = |id: &u64| {
            let recorded = self.get(*id)?;
            let since = recorded.at.saturating_sub(start).as_micros();
            Some(TraceStep {
                id: StepId(*id),
                cause: recorded.cause.cause(),
                at_microseconds: u64::try_from(since).unwrap_or(u64::MAX),
                step: recorded.step.clone(),
            })
        };
        wanted.iter().filter_map(step).collect()
    }
}
