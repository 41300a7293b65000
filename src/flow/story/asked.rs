//! What somebody asked for: the one request of which each stage has a line of its own.

use std::collections::BTreeSet;

use super::draft::{Draft, What};
use super::fold_words::verb;
use super::folding::Folding;
use super::stage::{StageKind, StageOutcome};
use super::target::RequestTarget;
use super::units::{Unit, UnitKind};
use crate::lane::APISERVER;
use crate::parts::RoutedRequest;
use crate::step::{Step, WriteOperation};
use crate::trace::{ListedResource, Trace, TraceStep};
use crate::words::{
    change, changes, decoded, describe, done, joined, passed_on, read_back, routed, subject, terminating,
};

/// Tells the unit at `at`, which `cause` led to; returns the draft from which all goes on.
pub(super) fn tell(folding: &mut Folding<'_>, at: usize, cause: Option<usize>) -> Option<usize> {
    let units = folding.units;
    let unit = &units[at];
    let steps = || unit.steps.iter().map(|step| &step.step);
    let mut telling = RequestTelling { folding, unit, cause };
    telling.request();
    telling.checks();
    telling.decoding();
    telling.admission();
    telling.aggregator();
    if let Some((code, why)) = unit.refusal() {
        let mut notes = vec![why.to_owned()];
        notes.extend(steps().filter_map(denied));
        telling.stage(StageKind::Request, format!("refused with {code}"), notes, StageOutcome::Refused);
    } else if let Some(Step::DryRun { code, .. }) = steps().find(|step| matches!(step, Step::DryRun { .. })) {
        let words = format!("answered {code}: a dry run, nothing is stored");
        telling.stage(StageKind::Request, words, vec![], StageOutcome::Done);
        telling.comes_last();
    }
    telling.store();
    telling.watch(at);
    telling.cause
}

/// The stages of one request, each caused by the one before.
struct RequestTelling<'f, 'a> {
    folding: &'f mut Folding<'a>,
    unit: &'f Unit<'a>,
    cause: Option<usize>,
}

impl<'a> RequestTelling<'_, 'a> {
    fn steps(&self) -> impl Iterator<Item = &'a Step> + use<'_, 'a> {
        self.unit.steps.iter().map(|step| &step.step)
    }

    /// One more stage, of those steps of the request that are of its kind.
    fn stage(&mut self, kind: StageKind, words: String, notes: Vec<String>, outcome: StageOutcome) {
        let Some(part) = self.part(kind, outcome) else { return };
        let key = format!("asked {} {kind:?} {outcome:?}", self.unit.first().id);
        let mut draft = Draft::of(&part, key, kind, APISERVER, What::Said(words));
        draft.take(&part);
        (draft.cause, draft.notes, draft.outcome) = (self.cause, notes, outcome);
        self.folding.drafts.push(draft);
        self.cause = Some(self.folding.drafts.len() - 1);
    }

    /// Those steps of the request that a stage of this kind tells.
    fn part(&self, kind: StageKind, outcome: StageOutcome) -> Option<Unit<'a>> {
        let is_of_it = |step: &&&TraceStep| is_of(&step.step, kind, outcome);
        let steps: Vec<&TraceStep> = self.unit.steps.iter().filter(is_of_it).copied().collect();
        (!steps.is_empty()).then_some(Unit { kind: UnitKind::Request, parent: None, steps })
    }

    fn request(&mut self) {
        let Step::RequestReceived { verb: asked_for, path, .. } = &self.unit.first().step else { return };
        let target = RequestTarget::of(path).unwrap_or_default();
        let who = self.unit.who();
        let named = self.steps().find_map(|step| match step {
            Step::Stored { resource, namespace, name, .. } if target.is_of(resource) => {
                Some(subject(resource, namespace, name))
            }
            Step::Refused { resource, namespace, name, .. }
            | Step::DryRun { resource, namespace, name, .. } => Some(subject(resource, namespace, name)),
            Step::PassedOn(passed) => Some(subject(&passed.resource, &passed.namespace, &passed.name)),
            _ => None,
        });
        let what = named.unwrap_or_else(|| match target.resource.as_str() {
            "" => path.to_string(),
            resource => subject(resource, target.namespace, target.name),
        });
        let version = Some(target.version.as_str()).filter(|version| !version.is_empty());
        let version = version.map(|version| format!(", as {version}")).unwrap_or_default();
        let with = self.routed().map(from).unwrap_or_default();
        let words = format!("{who} {} {what}{version}{with}", verb(asked_for, target.subresource));
        let audit = self.steps().find_map(|step| match step {
            Step::Responded { audit_id: Some(id), .. } => Some(format!("Audit-Id {id}")),
            _ => None,
        });
        self.stage(StageKind::Request, words, vec![], StageOutcome::Done);
        self.detail(audit);
    }

    fn routed(&self) -> Option<&'a RoutedRequest> {
        self.steps().find_map(|step| match step {
            Step::Routed(request) => Some(&**request),
            _ => None,
        })
    }

    /// Who reads the body, and what it is from there on; of what has no body, who answers.
    fn decoding(&mut self) {
        let Some(request) = self.routed() else { return };
        let body = self.steps().find_map(|step| match step {
            Step::Decoded(object) => Some(decoded(object)),
            _ => None,
        });
        let patch = || patch_sent_as(&request.sent_as).map(str::to_owned);
        let words = body.or_else(patch).map(|body| format!(": {body}")).unwrap_or_default();
        let words = format!("{}{words}", request.handler);
        self.stage(StageKind::Decoding, words, vec![], StageOutcome::Done);
        self.detail(Some(routed(request)));
    }

    /// The last stage is told where it ends: it has the request itself in it, too.
    fn comes_last(&mut self) {
        if let Some(draft) = self.cause.map(|at| &mut self.folding.drafts[at]) {
            draft.at = draft.until;
        }
    }

    /// Something that few look for, about the last stage.
    fn detail(&mut self, detail: Option<String>) {
        if let Some(draft) = self.cause.map(|at| &mut self.folding.drafts[at]) {
            draft.details.extend(detail);
        }
    }

    fn checks(&mut self) {
        let words: Vec<String> = self.steps().filter_map(check).collect();
        self.stage(StageKind::Checks, words.join("; "), vec![], StageOutcome::Done);
    }

    /// Where nobody changed anything that is said beside the checks.
    fn admission(&mut self) {
        let mut told = AdmissionTold::default();
        self.steps().for_each(|step| told.add(step));
        let AdmissionTold { changed_by, notes, is_refused, asked, is_there } = told;
        if !is_there {
            return;
        }
        let is_quiet = notes.is_empty() && !is_refused;
        if let Some(draft) = self.cause.filter(|_| is_quiet) {
            let part = self.part(StageKind::Admission, StageOutcome::Done);
            let draft = &mut self.folding.drafts[draft];
            if let What::Said(words) = &mut draft.what {
                words.push_str("; admission changes nothing");
            }
            part.iter().for_each(|part| draft.add_steps(part));
        } else {
            let (words, outcome) = match (is_refused, changed_by.as_slice()) {
                (true, _) => ("admission refuses it".to_owned(), StageOutcome::Refused),
                (_, []) => ("admission changes nothing".to_owned(), StageOutcome::Done),
                (_, by) => (format!("admission: changed by {}", by.join(", ")), StageOutcome::Done),
            };
            self.stage(StageKind::Admission, words, notes, outcome);
        }
        self.detail(asked.map(|asked| format!("plugins: {asked}")));
    }

    /// What another server did with it is not known here: what it was asked, and what it asked, is.
    fn aggregator(&mut self) {
        let passed = self.steps().find_map(|step| match step {
            Step::PassedOn(passed) => Some(passed),
            _ => None,
        });
        let Some(passed) = passed else { return };
        let notes = passed.reviews.iter().map(ToString::to_string).collect();
        self.stage(StageKind::Aggregator, passed_on(passed), notes, StageOutcome::Done);
    }

    fn store(&mut self) {
        let trace = self.folding.trace;
        let words: Vec<String> = self.steps().filter_map(|step| stored(step, trace)).collect();
        let mut notes = Vec::new();
        for step in self.steps() {
            match step {
                Step::Validated { changed, .. } => notes.extend(changed.iter().map(change)),
                Step::Terminating { finalizers, grace_seconds } => {
                    notes.push(format!("it {}", terminating(finalizers, *grace_seconds)));
                }
                _ => {}
            }
        }
        if words.is_empty() {
            return;
        }
        self.stage(StageKind::Store, words.join("; "), notes, StageOutcome::Done);
        let read = self.steps().find_map(|step| match step {
            Step::ReadBack { revision, version, after } => Some(read_back(*revision, version, after)),
            _ => None,
        });
        self.detail(read);
    }

    fn watch(&mut self, at: usize) {
        let mut heard = BTreeSet::new();
        let mut how = None;
        for step in self.steps() {
            if let Step::InformerUpdated { component, delta, callback, .. } = step {
                heard.insert(&**component);
                how = how.or(delta.zip(*callback));
            }
        }
        let queues = self.folding.children[at].iter().filter_map(|child| {
            match &self.folding.units[*child].first().step {
                Step::Enqueued { queue, .. } => Some(&**queue),
                _ => None,
            }
        });
        let queues: BTreeSet<&str> = queues.collect();
        let how = how.map(|(delta, call)| format!(" ({delta:?}, {call:?})")).unwrap_or_default();
        let queues = match queues.len() {
            0 => String::new(),
            _ => format!(", which goes into the queues of {}", list(&queues)),
        };
        let words = match heard.len() {
            0 => "watches are told, no informer has it yet".to_owned(),
            _ => format!("informers of {} hear of it{how}{queues}", list(&heard)),
        };
        self.stage(StageKind::Watch, words, vec![], StageOutcome::Done);
        let lists: Vec<String> = self.lists(&heard).collect();
        lists.into_iter().for_each(|list| self.detail(Some(list)));
    }

    /// Since when those who hear of it hold what is of its kind.
    fn lists<'s>(&'s self, heard: &'s BTreeSet<&str>) -> impl Iterator<Item = String> + 's {
        let resource = self.steps().find_map(Step::stores).unwrap_or_default();
        let lists = self.folding.trace.listed.iter();
        lists.filter(move |list| &*list.resource == resource && heard.contains(&*list.component)).map(
            |ListedResource { component, resource, revision, step, indices }| {
                let indices = indices.as_ref().map(|by| format!("; its indices: {by}")).unwrap_or_default();
                format!(
                    "{component} has listed {resource} at revision {revision} ({step}), and watches since{indices}"
                )
            },
        )
    }
}

/// What admission did to a request.
#[derive(Default)]
struct AdmissionTold<'a> {
    is_there: bool,
    changed_by: Vec<&'a str>,
    notes: Vec<String>,
    is_refused: bool,
    /// The plugins that had something to say.
    asked: Option<&'a str>,
}

impl<'a> AdmissionTold<'a> {
    fn add(&mut self, step: &'a Step) {
        match step {
            Step::Admitted { plugin, changed, values } => {
                self.changed_by.push(plugin);
                self.notes.push(match values.as_slice() {
                    [] => format!("{plugin}: {changed}"),
                    values => format!("{plugin}: {}", changes(values)),
                });
            }
            Step::WebhookCalled(_) => self.notes.push(describe(step)),
            Step::Denied { plugin } => {
                self.is_refused = true;
                self.notes.push(format!("{plugin} says no"));
            }
            Step::Validated { plugins, .. } => {
                self.asked = plugins.as_deref().filter(|plugins| !plugins.is_empty());
            }
            _ => return,
        }
        self.is_there = true;
    }
}

fn list(names: &BTreeSet<&str>) -> String {
    const NAMED: usize = 6;
    let first: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = if names.len() > NAMED { ", ..." } else { "" };
    first.join(", ") + more
}

/// Whether a request's step is told by a stage of this kind.
fn is_of(step: &Step, kind: StageKind, outcome: StageOutcome) -> bool {
    use Step::*;
    match step {
        RequestReceived { .. } => kind == StageKind::Request && outcome == StageOutcome::Done,
        Refused { .. } => kind == StageKind::Request && outcome == StageOutcome::Refused,
        Authenticated { .. }
        | Impersonated { .. }
        | Authorized { .. }
        | NotAuthenticated { .. }
        | NotAuthorized { .. } => kind == StageKind::Checks,
        Admitted { .. } | WebhookCalled(_) | Denied { .. } | Validated { .. } => kind == StageKind::Admission,
        Routed(_) | Decoded(_) => kind == StageKind::Decoding,
        PassedOn(_) => kind == StageKind::Aggregator,
        Stored { .. } | Terminating { .. } | ReadBack { .. } => kind == StageKind::Store,
        WatchDelivered { .. } | InformerUpdated { .. } => kind == StageKind::Watch,
        Responded { .. } | DryRun { .. } => kind == StageKind::Request && outcome == StageOutcome::Done,
        _ => false,
    }
}

fn check(step: &Step) -> Option<String> {
    Some(match step {
        Step::Authenticated { user, by, said } => {
            let said = if said.is_empty() { String::new() } else { format!(" ({})", joined(said)) };
            let by = if by.is_empty() { "authentication" } else { by };
            format!("{by} knows {user}{said}")
        }
        Step::NotAuthenticated { said } => format!("nobody knows who it is ({})", joined(said)),
        Step::Impersonated { user, acting, verb } => format!("{user} acts as {acting}, allowed by {verb}"),
        Step::Authorized { .. } => describe(step),
        Step::NotAuthorized { said } => format!("nobody allows it ({})", joined(said)),
        _ => return None,
    })
}

fn denied(step: &Step) -> Option<String> {
    matches!(step, Step::Denied { .. }).then(|| describe(step))
}

/// As ` (kubectl/v1.36.2: fieldManager=kubectl-create&fieldValidation=Strict)`.
fn from(request: &RoutedRequest) -> String {
    match (&*request.client, &*request.options) {
        ("", "") => String::new(),
        (client, "") => format!(" ({client})"),
        (client, options) => format!(" ({client}: {options})"),
    }
}

/// What a write left in the store, under which key.
fn stored(step: &Step, trace: &Trace) -> Option<String> {
    let Step::Stored { resource, namespace, name, revision, operation, bytes, .. } = step else {
        return None;
    };
    let what = format!("etcd has it {} at revision {revision}", done(*operation));
    let size = if *bytes == 0 { String::new() } else { format!(", {bytes} bytes") };
    let place = trace.storage.get(&**resource).map(|storage| {
        let key = golang::object_key::object_key(namespace, name);
        let version = if *operation == WriteOperation::Delete {
            String::new()
        } else {
            format!(" as {}", storage.version)
        };
        format!(": {}{key}{version}", storage.prefix)
    });
    Some(format!("{what}{}{size}", place.unwrap_or_default()))
}

/// Which of the ways to patch it is.
fn patch_sent_as(media_type: &str) -> Option<&'static str> {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "application/json-patch+json" => Some("a JSON patch"),
        "application/merge-patch+json" => Some("a JSON merge patch"),
        "application/strategic-merge-patch+json" => Some("a strategic merge patch"),
        "application/apply-patch+yaml" | "application/apply-patch+cbor" => Some("server-side apply"),
        _ => None,
    }
}
