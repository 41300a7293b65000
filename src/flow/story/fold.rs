//! Folding: units into stages. What happens for the same reason and is the same but for names is one stage;
//! and what comes round again, as a container that crashes, is the stage that it was before.

use std::collections::{BTreeMap, HashMap};

use super::draft::{Draft, Mentioned, Placed, Ran, Unplaced, Warned, What, Wrote};
use super::fold_words::verb;
use super::folding::Folding;
use super::node_said::{NodeNews, NodesSaid};
use super::stage::{EventCount, StageKind, StageOutcome, TraceStory};
use super::target::RequestTarget;
use super::units::{Unit, UnitKind, units};
use super::{asked, standing};
use crate::lane::{APISERVER, SCHEDULER};
use crate::parts::ComparedCount;
use crate::step::Step;
use crate::trace::Trace;
use crate::words::{describe, in_brackets};

/// Of what somebody deletes all and there is none; told with the names of the resources.
const NOTHING: &str = "resources of which there are none";

/// Tells a trace.
pub(super) fn story(trace: &Trace, is_folded: bool) -> TraceStory {
    let units = units(&trace.steps);
    let mut children = vec![Vec::new(); units.len()];
    for (at, unit) in units.iter().enumerate() {
        if let Some(parent) = unit.parent {
            children[parent].push(at);
        }
    }
    let mut folding = Folding {
        trace,
        children,
        is_folded,
        drafts: Vec::new(),
        anchors: vec![None; units.len()],
        by_key: HashMap::new(),
        events: BTreeMap::new(),
        idle_reconciles: 0,
        nodes: NodesSaid::default(),
        units: &units,
    };
    (0..units.len()).for_each(|at| folding.reach(at));
    folding.finish()
}

impl<'a> Folding<'a> {
    /// Tells a unit, what led to it first.
    fn reach(&mut self, at: usize) {
        let mut way = vec![at];
        while let Some(parent) = way.last().and_then(|at| self.units[*at].parent) {
            if self.anchors[parent].is_some() || way.len() > self.units.len() {
                break;
            }
            way.push(parent);
        }
        for at in way.into_iter().rev() {
            if self.anchors[at].is_none() {
                let cause = self.units[at].parent.and_then(|parent| self.anchors[parent]).flatten();
                self.anchors[at] = Some(self.tell(at, cause));
            }
        }
    }

    /// What comes of the unit comes of what this returns.
    fn tell(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        match unit.kind {
            UnitKind::Discovery => Some(self.discovery(at)),
            UnitKind::Request => self.request(at, cause),
            UnitKind::Reconcile => self.reconcile(at, cause),
            UnitKind::Attempt => self.attempt(at, cause),
            UnitKind::Sync => self.sync(at, cause),
            UnitKind::Event => self.event(at, cause),
            UnitKind::Other => self.start(at).or(cause),
        }
    }

    /// What a client asked before it asked for something.
    fn discovery(&mut self, at: usize) -> usize {
        let unit = &self.units[at];
        let mut who = "";
        let mut asked = Vec::new();
        for step in &unit.steps {
            if let Step::Discovered { client, path, code, .. } = &step.step {
                who = client;
                asked.push(format!("{path} ({code})"));
            }
        }
        let words = format!("{who} asks what is served: {}", asked.join(", "));
        let mut draft =
            Draft::of(unit, format!("discovery {at}"), StageKind::Discovery, APISERVER, What::Said(words));
        draft.take(unit);
        draft.details = unit.steps.iter().map(|step| describe(&step.step)).collect();
        self.drafts.push(draft);
        self.drafts.len() - 1
    }

    /// How far a component has come on its start, each a note of one stage.
    fn start(&mut self, at: usize) -> Option<usize> {
        let unit = &self.units[at];
        let Step::Started { component, what } = &unit.first().step else { return None };
        let words = || What::Said(format!("{component} starts"));
        let draft = self.draft(unit, ("started".into(), &[]), StageKind::Start, (component, None), words);
        self.drafts[draft].notes.push(what.to_string());
        Some(draft)
    }

    fn request(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        let Step::RequestReceived { user, verb: asked_for, path } = &unit.first().step else { return cause };
        let parent = self.parent(at).map(|parent| parent.kind);
        if parent == Some(UnitKind::Event) {
            return cause;
        }
        if unit.is_persons() {
            return asked::tell(self, at, cause);
        }
        let target = RequestTarget::of(path).unwrap_or_default();
        let refusal = unit.refusal();
        if parent == Some(UnitKind::Attempt) && target.subresource == "binding" && refusal.is_none() {
            if let Some(draft) = cause {
                self.drafts[draft].add_steps(unit);
            }
            return cause;
        }
        let (actor, family) = actor(user);
        let code = refusal.map_or(0, |(code, _)| code);
        let done = verb(asked_for, target.subresource);
        let resource = resource(unit, &target).unwrap_or(match target.resource.as_str() {
            "" => path,
            resource => resource,
        });
        // The end of a namespace looks into every resource, of which few have anything there.
        let is_in_vain = &**asked_for == "deletecollection"
            && refusal.is_none()
            && !unit.steps.iter().any(|step| matches!(step.step, Step::Stored { .. }));
        let (resource, names) =
            if is_in_vain { (NOTHING, vec![resource]) } else { (resource, targets(unit, &target)) };
        let news = refusal.is_none().then(|| self.nodes.written(user, &target)).flatten();
        let apart = news.as_ref().map(|_| unit.first().id.to_string()).unwrap_or_default();
        let key = format!("wrote {family} {done} {resource} {code}{apart}");
        let kind = StageKind::of(&actor);
        let verb = done;
        let NodeNews { words: news, is_bad } = news.unwrap_or_default();
        let new =
            || What::Wrote(Wrote { verb, resource: resource.to_owned(), news, code, ..Wrote::default() });
        let at_draft = self.draft(unit, (key, &names), kind, (&actor, cause), new);
        let (compared, retries) = self.parent(at).map(reconciled).unwrap_or_default();
        let draft = &mut self.drafts[at_draft];
        draft.outcome = if is_bad { StageOutcome::Warning } else { outcome(code) };
        if let What::Wrote(wrote) = &mut draft.what {
            wrote.actors.add(&actor);
            names.iter().for_each(|name| wrote.targets.add(name));
            wrote.compared = wrote.compared.take().or(compared);
            wrote.retries = wrote.retries.max(retries);
            if let Some((_, why)) = refusal {
                wrote.whys.add(&without(why, &names));
                wrote.whole_whys.add(why);
            }
        }
        Some(at_draft)
    }

    fn reconcile(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        let did_nothing =
            self.children[at].iter().all(|child| self.units[*child].kind == UnitKind::Reconcile);
        let ended = unit.steps.iter().find_map(|step| match &step.step {
            Step::ReconcileEnded { result, .. } => Some(&**result),
            _ => None,
        });
        let failed = ended.filter(|result| *result != "done" && !result.starts_with("requeue after"));
        match failed {
            Some(error) if !self.has_refused_child(at) => Some(self.failed(unit, error, cause)),
            None if did_nothing && ended.is_some() => {
                self.idle_reconciles += 1;
                cause
            }
            _ => cause,
        }
    }

    fn failed(&mut self, unit: &Unit<'_>, error: &str, cause: Option<usize>) -> usize {
        let component = unit.first().step.component().unwrap_or_default();
        let words = format!("{component} fails: {error}; the key goes back into its queue");
        let key = format!("failed {words}");
        let said = || What::Said(words);
        let at = self.draft(unit, (key, &[]), StageKind::Controller, (&component, cause), said);
        self.drafts[at].outcome = StageOutcome::Warning;
        at
    }

    fn attempt(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        let is_no = |step: &Step| matches!(step, Step::Filtered { feasible: 0, .. });
        let has_failed = unit.steps.iter().any(|step| is_no(&step.step)) || self.has_failed_event(at);
        // What came of it may be no part of this story.
        if unit.steps.len() == 1 && !has_failed {
            return cause;
        }
        let is_placed = !has_failed;
        let (key, what) = if is_placed {
            ("placed", What::Placed(Placed::default()))
        } else {
            ("unplaced", What::Unplaced(Unplaced::default()))
        };
        let pod = match &unit.first().step {
            Step::SchedulingAttempt { pod } => self.told(pod),
            _ => "",
        };
        let kind = StageKind::Scheduler;
        let draft = self.draft(unit, (key.into(), &[pod]), kind, (SCHEDULER, cause), || what);
        let gathered = &mut self.drafts[draft];
        match &mut gathered.what {
            What::Placed(placed) => {
                placed.pods.add(pod);
                unit.steps.iter().for_each(|step| placed.add(&step.step));
            }
            What::Unplaced(unplaced) => {
                gathered.outcome = StageOutcome::Warning;
                unplaced.pods.add(pod);
                unit.steps.iter().for_each(|step| unplaced.add(&step.step));
            }
            _ => {}
        }
        Some(draft)
    }

    /// A sync that does nothing to containers is told by what it writes.
    fn sync(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        let cause = self.driven_out(at).or(cause);
        let is_told = |step: &Step| !matches!(step, Step::PodWorkerSync { .. } | Step::EventRecorded { .. });
        if !unit.steps.iter().any(|step| is_told(&step.step)) {
            return cause;
        }
        let state = match &unit.first().step {
            Step::PodWorkerSync { state, .. } => &**state,
            _ => "",
        };
        let component = unit.first().step.component().unwrap_or_default();
        let new = || What::Ran(Ran::default());
        let on: Vec<(&str, &str)> = unit.steps.iter().filter_map(|step| on_node(&step.step)).collect();
        let on: Vec<(&str, &str)> = on.into_iter().map(|(node, pod)| (node, self.told(pod))).collect();
        let pods: Vec<&str> = on.iter().map(|(_, pod)| *pod).collect();
        let has = |is_it: fn(&Step) -> bool| unit.steps.iter().any(|step| is_it(&step.step));
        // That a pod ends is another act than that it begins, in the same state of its worker too.
        let ends = has(|step| matches!(step, Step::SandboxStopped { .. }))
            && !has(|step| matches!(step, Step::SandboxCreated { .. }));
        let key = format!("ran {state} {ends}");
        let draft = self.draft(unit, (key, &pods), StageKind::Kubelet, (&component, cause), new);
        let gathered = &mut self.drafts[draft];
        if let What::Ran(ran) = &mut gathered.what {
            unit.steps.iter().for_each(|step| ran.add(&step.step));
            for (node, pod) in on {
                ran.nodes.add(node);
                ran.pods.add(pod);
            }
            for step in &unit.steps {
                if let Step::PodPrepared { .. } = &step.step {
                    gathered.details.push(describe(&step.step));
                }
            }
            if ran.has_failed {
                gathered.outcome = StageOutcome::Warning;
            }
        }
        Some(draft)
    }

    fn event(&mut self, at: usize, cause: Option<usize>) -> Option<usize> {
        let unit = &self.units[at];
        let Step::EventRecorded { component, object, reason, message, warning, .. } = &unit.first().step
        else {
            return cause;
        };
        if !warning {
            if &**component == "kubelet" {
                self.nodes.told(object, reason);
            }
            *self.events.entry(reason.to_string()).or_default() += 1;
            return cause;
        }
        if let (Some(What::Unplaced(unplaced)), "FailedScheduling") =
            (cause.map(|draft| &mut self.drafts[draft].what), &**reason)
        {
            unplaced.message = message.to_string();
            return cause;
        }
        if self.units[at].parent.is_some_and(|parent| self.has_refused_child(parent)) {
            return cause;
        }
        let (component, reason) = (component.to_string(), reason.to_string());
        let warned = Warned { component: component.clone(), reason: reason.clone(), ..Warned::default() };
        let key = format!("warned {reason} {component}");
        let kind = StageKind::of(&component);
        let object = self.told(object).to_owned();
        let about = (key, &[object.as_str()][..]);
        let draft = self.draft(unit, about, kind, (&component, cause), || What::Warned(warned));
        self.drafts[draft].outcome = StageOutcome::Warning;
        if let What::Warned(warned) = &mut self.drafts[draft].what {
            warned.objects.add(&object);
            warned.message = message.to_string();
        }
        Some(draft)
    }

    fn finish(self) -> TraceStory {
        let trace = self.trace;
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_by_key(|at| (self.drafts[*at].at, *at));
        let mut numbers = vec![0; order.len()];
        for (number, at) in (1..).zip(&order) {
            numbers[*at] = number;
        }
        let stages = order.iter().map(|at| self.drafts[*at].stage(&numbers, *at)).collect();
        let events = self.events.into_iter();
        TraceStory {
            subject: trace.subject.clone(),
            uid: trace.uid,
            began: trace.began.clone(),
            stages,
            standing: standing::standing(trace, self.units),
            events: events.map(|(reason, count)| EventCount { reason, count }).collect(),
            idle_reconciles: self.idle_reconciles,
            steps: trace.steps.len(),
            left_out: trace.left_out,
            microseconds: trace.steps.iter().map(|step| step.at_microseconds).max().unwrap_or_default(),
            remarks: trace.remarks(),
        }
    }
}

fn outcome(code: u16) -> StageOutcome {
    match code {
        0..400 => StageOutcome::Done,
        409 => StageOutcome::Warning,
        _ => StageOutcome::Refused,
    }
}

/// A component by the name of its user, and what all of its like have in common.
fn actor(user: &str) -> (String, &str) {
    match user.strip_prefix("system:node:") {
        Some(node) => (format!("kubelet/{node}"), "kubelet"),
        None => {
            let name = user.rsplit(':').next().unwrap_or(user);
            (name.to_owned(), name)
        }
    }
}

/// Of what it wrote or meant to write something.
fn resource<'a>(unit: &Unit<'a>, target: &RequestTarget<'a>) -> Option<&'a str> {
    let written = unit.steps.iter().filter_map(|step| written(&step.step));
    written.map(|(resource, _)| resource).find(|resource| target.is_of(resource))
}

/// The resource and the name of what a step wrote, or came to nothing of.
fn written(step: &Step) -> Option<(&str, &str)> {
    match step {
        Step::Stored { resource, name, .. }
        | Step::Refused { resource, name, .. }
        | Step::DryRun { resource, name, .. } => Some((resource, name)),
        _ => None,
    }
}

/// The names of the objects that a request wrote or meant to write.
fn targets<'a>(unit: &Unit<'a>, target: &RequestTarget<'a>) -> Vec<&'a str> {
    let written = unit.steps.iter().filter_map(|step| written(&step.step));
    let of_it = written.filter(|(resource, name)| target.is_of(resource) && !name.is_empty());
    let named: Vec<&str> = of_it.map(|(_, name)| name).collect();
    if named.is_empty() && !target.name.is_empty() { vec![target.name] } else { named }
}

/// A refusal's words without the name of its object, so that those of several are the same.
fn without(why: &str, names: &[&str]) -> String {
    if names.is_empty() {
        // The apiserver made up a name that nobody has heard of before.
        let parts: Vec<&str> = why.splitn(3, '"').collect();
        if let [resource, _, rest] = parts.as_slice() {
            return format!("{resource}{}", rest.trim_start());
        }
    }
    names.iter().fold(why.to_owned(), |why, name| why.replacen(&format!("{name:?} "), "", 1))
}

/// What a reconcile compared, and how often its key had failed before and how long it waited then.
fn reconciled(unit: &Unit<'_>) -> (Option<ComparedCount>, (u32, u64)) {
    let compared = unit.steps.iter().find_map(|step| match &step.step {
        Step::ReconcileEnded { compared, .. } => compared.clone(),
        _ => None,
    });
    let retries = unit.steps.iter().find_map(|step| match &step.step {
        Step::Enqueued { retries, delay_milliseconds, .. } => Some((*retries, *delay_milliseconds)),
        _ => None,
    });
    (compared, retries.unwrap_or_default())
}

impl StageKind {
    /// Of what a component does.
    fn of(component: &str) -> StageKind {
        match crate::lane::Lane::of(component) {
            crate::lane::Lane::Scheduler => StageKind::Scheduler,
            crate::lane::Lane::Kubelets => StageKind::Kubelet,
            _ => StageKind::Controller,
        }
    }
}

impl Placed {
    fn add(&mut self, step: &Step) {
        match step {
            Step::Assumed { node, .. } => self.nodes.add(node),
            Step::Filtered { feasible, nodes, .. } if self.asked == 0 => {
                (self.feasible, self.asked) = (*feasible, *nodes);
            }
            Step::Scored { table, .. } if self.table.is_empty() => self.table.clone_from(table),
            _ => {}
        }
    }
}

impl Unplaced {
    fn add(&mut self, step: &Step) {
        if let Step::Filtered { feasible, nodes, refusals, .. } = step {
            (self.feasible, self.asked) = (*feasible, *nodes);
            self.refusals.clone_from(refusals);
        }
    }
}

impl Ran {
    fn add(&mut self, step: &Step) {
        let count = |names: &mut Mentioned, name: &str| names.add(name);
        match step {
            Step::SandboxCreated { address, .. } => count(&mut self.addresses, address),
            Step::ImagePulled { image, .. } => count(&mut self.images, image),
            Step::ContainerCreated { container, .. } => count(&mut self.created, container),
            Step::ContainerStarted { container, .. } => count(&mut self.started, container),
            Step::SandboxStopped { .. } => self.stopped += 1,
            Step::ContainerExited { container, exit_code, reason, .. } => {
                self.has_failed |= *exit_code != 0;
                let reason = in_brackets(reason);
                count(&mut self.exits, &format!("{container} ends with exit code {exit_code}{reason}"));
            }
            _ => {}
        }
    }
}

/// Where a kubelet's step happened, and to which pod; each pod of a sync once.
fn on_node(step: &Step) -> Option<(&str, &str)> {
    match step {
        Step::PodWorkerSync { node, pod, .. } | Step::SandboxStopped { node, pod } => Some((node, pod)),
        _ => None,
    }
}
