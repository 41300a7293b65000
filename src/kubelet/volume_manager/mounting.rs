//! What of a pod's volumes is fetched, mounted and written so far (`desiredStateOfWorld` and
//! `actualStateOfWorld`).

use std::sync::Arc;
use std::time::Duration;

use super::host_files::Written;
use super::sources::{self, Found, Source, Sources};
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod_detail::PodDetail;

/// What the containers of one pod find.
pub(crate) struct Mounting {
    pub(crate) detail: Arc<PodDetail>,
    pub(crate) wanted: Vec<Source>,
    /// Whether a container is known to look at files.
    pub(crate) looks_around: bool,
    pub(crate) sources: Option<Arc<Sources>>,
    pub(crate) fetched_at: Option<Time>,
    /// It is to be fetched, and nobody has been told yet.
    pub(crate) asks: bool,
    pub(crate) is_mounted: bool,
    /// When mounting is tried again, and the pause before that.
    pub(crate) retry: Option<(Time, Duration)>,
    pub(crate) written: Written,
    /// The pod ran before this kubelet, and is taken up when all is there.
    pub(crate) is_to_be_adopted: bool,
}

impl Mounting {
    /// Of a pod that has not begun.
    pub(crate) fn new(object: &Object, looks_around: bool) -> Mounting {
        let detail = object.view::<PodDetail>();
        Mounting {
            wanted: sources::wanted(&detail, looks_around),
            detail,
            looks_around,
            fetched_at: None,
            sources: None,
            asks: false,
            is_mounted: false,
            retry: None,
            written: Written::new(),
            is_to_be_adopted: false,
        }
    }

    /// Of a pod that runs already, and into which somebody looks now.
    pub(crate) fn of_running(object: &Object, now: Time) -> Mounting {
        let sources = Some(Arc::new(Sources::new()));
        Mounting { is_mounted: true, fetched_at: Some(now), sources, ..Mounting::new(object, true) }
    }

    /// From now on all is fetched that its containers might look at.
    pub(crate) fn look_around(&mut self) {
        (self.wanted, self.looks_around) = (sources::wanted(&self.detail, true), true);
    }

    /// A token serves until its pod has gone.
    pub(crate) fn has_token(&self, source: &Source) -> bool {
        self.sources.as_ref().is_some_and(|sources| matches!(sources.get(source), Some(Found::Token(_))))
    }

    /// Whether all is there that is wanted.
    pub(crate) fn is_fetched(&self) -> bool {
        self.wanted.is_empty() || self.sources.is_some()
    }
}
