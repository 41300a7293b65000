//! The options of requests (`metav1.ListOptions`, `DeleteOptions`, ...) and the kinds of patches.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};
use sync::Mutex;

use super::selectable::Predicate;

/// The four content types of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902, `application/json-patch+json`
    Json,
    /// RFC 7386, `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    StrategicMerge,
    /// Server-side apply, `application/apply-patch+yaml`
    Apply,
}

impl PatchType {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::StrategicMerge => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

/// What a list or watch asks for, already understood.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which objects.
    pub predicate: Predicate,
    /// As given: unset, `0`, or a revision.
    pub resource_version: Option<String>,
    /// `Exact` or `NotOlderThan`.
    pub resource_version_match: Option<String>,
    /// At most so many items in an answer.
    pub limit: Option<usize>,
    /// Where the last answer stopped.
    pub continue_token: Option<String>,
    /// Whether bookmarks are wanted.
    pub allow_watch_bookmarks: bool,
    /// KEP-3157: the watch starts with the list, closed by a bookmark.
    pub send_initial_events: Option<bool>,
    /// The watch ends after so many seconds.
    pub timeout_seconds: Option<u64>,
    /// Until it has sent the state that it begins with.
    pub held: Option<Held>,
    /// By what a watch may be ended from outside.
    pub cut: Option<WatchCut>,
}

/// Ends a watch from outside, as a network does that is cut. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct WatchCut(Arc<AtomicBool>);

/// A [`WatchCut`] that keeps nothing of a watch that has ended.
#[derive(Clone, Debug)]
pub struct WeakWatchCut(Weak<AtomicBool>);

impl WatchCut {
    /// Whether it is to end.
    pub fn is_cut(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// For whoever may cut it.
    pub fn downgrade(&self) -> WeakWatchCut {
        WeakWatchCut(Arc::downgrade(&self.0))
    }
}

impl WeakWatchCut {
    /// Whether the watch goes on.
    pub fn is_open(&self) -> bool {
        self.0.upgrade().is_some_and(|cut| !cut.load(Ordering::Acquire))
    }

    /// No event is delivered any more. The watch ends when its server looks at it next.
    pub fn cut(&self) {
        if let Some(cut) = self.0.upgrade() {
            cut.store(true, Ordering::Release);
        }
    }
}

/// Something that is given back when the last of those who hold it is done: a place among the requests that
/// are worked on.
#[derive(Clone)]
pub struct Held {
    _held: Arc<dyn Any + Send + Sync>,
}

impl Held {
    /// Holds it.
    pub fn new(held: impl Send + 'static) -> Held {
        Held { _held: Arc::new(Mutex::new(held)) }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// Seconds of grace; 0 is now; unset is the kind's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<i64>,
    /// What must be true of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Preconditions>,
    /// Deprecated; what `propagationPolicy: Orphan` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphan_dependents: Option<bool>,
    /// What becomes of the dependents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagation_policy: Option<String>,
    /// `All` or nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dry_run: Vec<String>,
}

/// `metav1.Preconditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// It must have this uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// It must be at this revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// With a propagation policy: `Background`, `Foreground` or `Orphan`.
    pub fn propagation(policy: &str) -> DeleteOptions {
        DeleteOptions { propagation_policy: Some(policy.into()), ..DeleteOptions::default() }
    }

    /// Of exactly this object.
    pub fn of_uid(mut self, uid: &str) -> DeleteOptions {
        self.preconditions.get_or_insert_default().uid = Some(uid.into());
        self
    }
}
