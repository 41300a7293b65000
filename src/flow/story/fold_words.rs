//! The words of a stage, once all is known that is folded into it.

use super::draft::{Draft, Mentioned, Placed, Ran, Unplaced, Warned, What, Wrote};
use super::stage::StoryStage;
use crate::parts::ComparedCount;
use crate::words::{comparison, counted, node_score, one_line, refusal};

/// So many names are told.
const NAMED: usize = 3;
/// So many notes of one kind are told.
const NOTES: usize = 4;

/// What somebody does with a resource, for a sentence.
pub(super) fn verb(verb: &str, subresource: &str) -> String {
    match (verb, subresource) {
        ("create", "binding") => "binds".into(),
        ("create", "eviction") => "evicts".into(),
        ("update" | "patch", "status") => "writes the status of".into(),
        ("update" | "patch", "scale") => "scales".into(),
        ("deletecollection", _) => "deletes all of".into(),
        ("patch", "") => "patches".into(),
        (verb, "") => format!("{verb}s"),
        (verb, subresource) => format!("{verb}s the {subresource} of"),
    }
}

impl Draft {
    /// The stage, with the numbers that drafts have got.
    pub(super) fn stage(&self, numbers: &[usize], at: usize) -> StoryStage {
        let (words, mut notes) = match &self.what {
            What::Said(words) => (words.clone(), vec![]),
            What::Wrote(wrote) => (wrote.words(self.count), wrote.notes()),
            What::Placed(placed) => (placed.words(), placed.notes()),
            What::Unplaced(unplaced) => (unplaced.words(self.count), unplaced.notes()),
            What::Ran(ran) => (ran.words(), vec![]),
            What::Warned(warned) => (warned.words(self.count), vec![]),
        };
        notes.extend(self.notes.iter().cloned());
        let mut steps = self.steps.clone();
        steps.sort_unstable();
        StoryStage {
            number: numbers[at],
            cause: self.cause.map(|cause| numbers[cause]),
            kind: self.kind,
            lane: self.lane,
            component: self.component.clone(),
            outcome: self.outcome,
            is_write: self.is_write,
            count: self.count,
            at_microseconds: self.at,
            until_microseconds: self.until,
            words: one_line(&words),
            notes: notes.iter().map(|note| one_line(note)).collect(),
            details: self.details.clone(),
            steps,
        }
    }
}

/// `, 3 times` of what happened to fewer things than it happened.
fn times(count: usize, things: usize) -> String {
    if count > things.max(1) { format!(", {count} times") } else { String::new() }
}

/// `pods web-a`, or `3 pods: web-a, web-b, ...`.
fn things(resource: &str, targets: &Mentioned) -> String {
    match targets.len() {
        0 => resource.to_owned(),
        // No resource, but a sentence about some.
        1 if resource.contains(' ') => format!("{resource}: {}", targets.shown(1)),
        1 => format!("{resource} {}", targets.shown(1)),
        many => format!("{many} {resource}: {}", targets.shown(NAMED)),
    }
}

/// `kubelet (node-1, node-2)`, or the one name.
fn actors(names: &Mentioned) -> String {
    let nodes: Vec<&str> = names.iter().filter_map(|(name, _)| name.strip_prefix("kubelet/")).collect();
    match names.len() {
        1 => names.shown(1),
        _ if nodes.len() == names.len() => {
            let more = if nodes.len() > NAMED { ", ..." } else { "" };
            format!("kubelet ({}{more})", nodes[..nodes.len().min(NAMED)].join(", "))
        }
        _ => names.shown(NAMED),
    }
}

impl Wrote {
    fn words(&self, count: usize) -> String {
        let (actors, what) = (actors(&self.actors), things(&self.resource, &self.targets));
        let (verb, times) = (&self.verb, times(count, self.targets.len()));
        // A status says what is, and not what is to be done about it.
        let is_act = !self.verb.contains(" status ");
        let differs = |compared: &&ComparedCount| is_act && compared.wanted != compared.found;
        match (self.code, self.compared.as_ref().filter(differs)) {
            (0, Some(compared)) => format!("{actors} {verb} {what}{times} ({})", comparison(compared)),
            (0, None) => format!("{actors} {verb} {what}{times}{}", self.news),
            (409, _) => format!("{actors} meets a conflict (409) when it {verb} {what}{times}"),
            (code, _) => format!("{actors} is refused ({code}) when it {verb} {what}{times}"),
        }
    }

    fn notes(&self) -> Vec<String> {
        // What was said of one object alone names it.
        let whys = if self.whole_whys.len() <= self.whys.len() { &self.whole_whys } else { &self.whys };
        let mut notes: Vec<String> = whys.iter().take(NOTES).map(|(why, _)| why.to_owned()).collect();
        if let (retries @ 1.., delay) = self.retries {
            notes.push(format!(
                "tried again {}, the last time after {delay} ms",
                counted(retries.into(), "time")
            ));
        }
        notes
    }
}

impl Placed {
    fn words(&self) -> String {
        let pods = things("pods", &self.pods);
        if self.nodes.is_empty() {
            return format!("kube-scheduler has found nodes for {pods}");
        }
        format!("kube-scheduler binds {pods} to {}", self.nodes.counted(NAMED))
    }

    fn notes(&self) -> Vec<String> {
        let first = self.pods.shown(1);
        let pod = first.split(", ...").next().unwrap_or_default();
        let fit = (self.asked > 0).then(|| format!("{} of {} nodes fit {pod}", self.feasible, self.asked));
        fit.into_iter().chain(self.table.iter().map(|row| format!("score of {}", node_score(row)))).collect()
    }
}

impl Unplaced {
    fn words(&self, count: usize) -> String {
        let (pods, times) = (things("pods", &self.pods), times(count, self.pods.len()));
        let fit = match self.asked {
            0 => String::new(),
            asked => format!(": {} of {asked} fit", self.feasible),
        };
        format!("kube-scheduler finds no node for {pods}{fit}{times}")
    }

    fn notes(&self) -> Vec<String> {
        let notes: Vec<String> = self.refusals.iter().map(refusal).collect();
        let message = Some(self.message.clone()).filter(|message| notes.is_empty() && !message.is_empty());
        notes.into_iter().chain(message).collect()
    }
}

impl Ran {
    /// In the verbs of CRI, in the order in which a kubelet uses them.
    fn words(&self) -> String {
        let with = |verb: &str, names: &Mentioned| {
            (!names.is_empty()).then(|| format!("{verb} ({})", names.shown(NAMED)))
        };
        let exits = self.exits.iter().map(|(exit, count)| exit.to_owned() + &times(count, 1));
        let stopped = (self.stopped > 0).then(|| "StopPodSandbox".to_owned());
        let done = [
            with("RunPodSandbox", &self.addresses),
            with("PullImage", &self.images),
            with("CreateContainer", &self.created),
            with("StartContainer", &self.started),
        ];
        let done: Vec<String> = done.into_iter().flatten().chain(exits).chain(stopped).collect();
        let nodes = actors(&self.nodes.prefixed("kubelet/"));
        format!("{nodes}: {}: {}", things("pods", &self.pods), done.join(", "))
    }
}

impl Mentioned {
    fn prefixed(&self, prefix: &str) -> Mentioned {
        let mut names = Mentioned::default();
        self.iter().for_each(|(name, _)| names.add(&format!("{prefix}{name}")));
        names
    }
}

impl Warned {
    fn words(&self, count: usize) -> String {
        let Warned { component, reason, objects, message } = self;
        let about = objects.shown(NAMED);
        let times = times(count, objects.len());
        format!("{component} warns of {about}: {reason}: {message}{times}")
    }
}
