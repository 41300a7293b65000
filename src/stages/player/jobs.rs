//! `Jobs`: the objects of a kind, and what is to be played of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::pace::{Pace, TooOften};
use crate::stage::ObjectStage;
use apimachinery::object::Object;
use apimachinery::time::Time;

/// What is to be played of an object.
#[derive(Debug)]
pub(super) struct StageJob {
    /// As it matched.
    pub(super) object: Arc<Object>,
    pub(super) stage: Arc<ObjectStage>,
    pub(super) due: Time,
    /// The step to begin with.
    pub(super) step: usize,
    /// How often it has failed.
    pub(super) retries: u32,
}

/// The objects of a kind. Bound: those that there are.
#[derive(Default)]
pub(super) struct StageJobs {
    /// By namespace and name.
    entries: BTreeMap<Arc<str>, JobEntry>,
    /// A key is in here if and only if its entry has a job and is not being played.
    timers: BTreeSet<(Time, Arc<str>)>,
}

struct JobEntry {
    /// As it was seen last.
    object: Arc<Object>,
    job: Option<StageJob>,
    is_playing: bool,
    pace: Pace,
}

impl StageJobs {
    /// Whether this, or something later, was seen of an object.
    pub(super) fn knows(&self, object: &Object) -> bool {
        let is_it = |known: &Object| {
            known.metadata.uid == object.metadata.uid
                && known.metadata.resource_version >= object.metadata.resource_version
        };
        self.entries.get(object.shared_key()).is_some_and(|entry| is_it(&entry.object))
    }

    /// Another object of the same name begins anew.
    pub(super) fn see(&mut self, object: &Arc<Object>) {
        let key = object.shared_key();
        let before =
            self.entries.get_mut(key).filter(|entry| entry.object.metadata.uid == object.metadata.uid);
        if let Some(entry) = before {
            entry.object = object.clone();
            return;
        }
        self.set(key, None);
        let entry = JobEntry { object: object.clone(), job: None, is_playing: false, pace: Pace::default() };
        self.entries.insert(key.clone(), entry);
    }

    /// It is gone.
    pub(super) fn forget(&mut self, object: &Object) {
        self.set(object.shared_key(), None);
        self.entries.remove(object.shared_key());
    }

    /// There are these and no others.
    pub(super) fn retain(&mut self, there: &[Arc<Object>]) {
        let keys: BTreeSet<&Arc<str>> = there.iter().map(|object| object.shared_key()).collect();
        self.entries.retain(|key, _| keys.contains(key));
        self.timers.retain(|(_, key)| keys.contains(key));
    }

    /// What is to be played of an object from now on.
    pub(super) fn set(&mut self, key: &Arc<str>, job: Option<StageJob>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(before) = entry.job.take() {
            self.timers.remove(&(before.due, key.clone()));
        }
        if let Some(job) = &job
            && !entry.is_playing
        {
            self.timers.insert((job.due, key.clone()));
        }
        entry.job = job;
    }

    /// All objects, with what was to be played.
    pub(super) fn take_all(&mut self) -> Vec<(Arc<Object>, Option<StageJob>)> {
        self.timers.clear();
        self.entries.values_mut().map(|entry| (entry.object.clone(), entry.job.take())).collect()
    }

    /// The next job that is due.
    ///
    /// # Errors
    /// None is: how long none will be, or none where none is known.
    pub(super) fn take_due(&mut self, now: Time) -> Result<StageJob, Option<Duration>> {
        let (due, key) = self.timers.first().cloned().ok_or(None)?;
        if due > now {
            return Err(Some((due - now).to_std().unwrap_or_default()));
        }
        self.timers.remove(&(due, key.clone()));
        self.entries.get_mut(&key).and_then(|entry| entry.job.take()).ok_or(Some(Duration::ZERO))
    }

    /// Until when an object is played no more, where it was played too often.
    pub(super) fn hold(&mut self, object: &Object, now: Time) -> Option<TooOften> {
        self.entries.get_mut(object.shared_key())?.pace.count(now)
    }

    /// It is being played: what comes meanwhile waits.
    pub(super) fn begin(&mut self, object: &Object) {
        if let Some(entry) = self.entries.get_mut(object.shared_key()) {
            entry.is_playing = true;
        }
    }

    /// It is not being played any more.
    pub(super) fn end(&mut self, object: &Object) {
        let key = object.shared_key();
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.is_playing = false;
        if let Some(job) = &entry.job {
            self.timers.insert((job.due, key.clone()));
        }
    }

    /// What failed is tried again, if the object is as it was.
    pub(super) fn retry(&mut self, job: StageJob) {
        let key = job.object.shared_key().clone();
        let is_open = self
            .entries
            .get(&key)
            .is_some_and(|entry| entry.job.is_none() && entry.object.metadata.uid == job.object.metadata.uid);
        if is_open {
            self.set(&key, Some(job));
        }
    }
}
