//! What a ConfigMap says of a pod beside its annotations: who listens, what commands and logs say. It is
//! fetched as a mounted one is, and a pod waits for it as for that.

use std::sync::Arc;

use super::container_runtime::declared;
use super::kuberuntime::context::PodEvent;
use super::pod_workers::{PodWorker, WorkerState};
use super::sandbox_state::Sandbox;
use super::volume_manager::answers_source::{self, AnswersSource};
use super::volume_manager::mounting::Mounting;
use super::volume_manager::sources::Found;
use apis::views::pod::Pod;

impl PodWorker {
    /// Its annotations may name another ConfigMap than they did, or none any more.
    pub(crate) fn follow_answers(&mut self) {
        let answers = AnswersSource::of(&self.object.view::<Pod>().metadata.annotations);
        let is_over = self.state != WorkerState::Sync || self.rejection.is_some();
        let known = self.mounting.as_ref().and_then(|mounting| mounting.answers.as_ref());
        if known == answers.as_ref() || is_over {
            return;
        }
        let begun = self.start_time;
        let nothing =
            || Box::new(Mounting { wanted: vec![], answers: None, ..Mounting::new(&self.object, false) });
        self.mounting.get_or_insert_with(nothing).follow_answers(answers, begun);
    }

    /// The pod has the annotations of its own, and beside them those that its ConfigMap has for it. Says
    /// whether these are others than before.
    pub(crate) fn take_answers(&mut self) -> bool {
        let Some(mounting) = self.mounting.as_ref().filter(|mounting| mounting.answers.is_some()) else {
            return false;
        };
        let own = self.object.view::<Pod>();
        let own = &own.metadata.annotations;
        let said = match mounting.found_answers() {
            Some(Found::Object(map)) => declared::completed(own, map.keys()),
            _ => own.clone(),
        };
        let is_news = said != self.pod.metadata.annotations;
        if is_news {
            Arc::make_mut(&mut self.pod).metadata.annotations = said;
        }
        is_news
    }

    /// People are told of answers that have changed, and that there are none.
    pub(crate) fn note_answers(&mut self, changed: bool, were_known: bool) {
        let found = self.mounting.as_ref().and_then(|mounting| mounting.found_answers());
        let are_missing = !were_known && matches!(found, Some(Found::Missing(_)));
        // Before that they are told with all else that the pod says.
        let is_begun = matches!(self.sandbox, Sandbox::Ready(_));
        self.has_new_listeners |= is_begun && (changed || are_missing);
    }

    /// Whether its answers are there.
    ///
    /// # Errors
    /// What people are told who wait for the pod.
    pub(crate) fn has_answers(&self) -> Result<(), Option<PodEvent>> {
        let Some(mounting) = &self.mounting else { return Ok(()) };
        let is_needed = mounting.answers.as_ref().is_some_and(|answers| !answers.is_optional);
        match mounting.found_answers() {
            Some(Found::Missing(why)) if is_needed => {
                Err(Some(PodEvent::warning("FailedMount", answers_source::missing(why))))
            }
            _ => Ok(()),
        }
    }
}
