//! What of a pod's volumes is fetched, mounted and written so far (`desiredStateOfWorld` and
//! `actualStateOfWorld`).

use std::sync::Arc;
use std::time::Duration;

use super::answers_source::AnswersSource;
use super::devices;
use super::host_files::WrittenFiles;
use super::sources::{self, Found, Source, Sources};
use apimachinery::object::Object;
use apimachinery::time::Time;
use apis::views::pod::Pod;
use apis::views::pod_detail::PodDetail;

/// What the containers of one pod find.
pub(crate) struct Mounting {
    pub(crate) detail: Arc<PodDetail>,
    pub(crate) wanted: Vec<Source>,
    /// The ConfigMap that says what its annotations do not.
    pub(crate) answers: Option<AnswersSource>,
    /// Those of it that registries want.
    pub(crate) pull_secrets: Vec<Source>,
    /// Whether a container is known to look at files.
    pub(crate) looks_around: bool,
    pub(crate) sources: Option<Arc<Sources>>,
    pub(crate) fetched_at: Option<Time>,
    /// It is to be fetched, and nobody has been told yet.
    pub(crate) asks: bool,
    pub(crate) is_mounted: bool,
    /// Since when it waits for volumes that are not attached.
    pub(crate) waits_since: Option<Time>,
    /// When mounting is tried again, and the pause before that.
    pub(crate) retry: Option<(Time, Duration)>,
    pub(crate) written: WrittenFiles,
    /// The pod ran before this kubelet, and is taken up when all is there.
    pub(crate) is_to_be_adopted: bool,
}

impl Mounting {
    /// Of a pod that has not begun.
    pub(crate) fn new(object: &Object, looks_around: bool) -> Mounting {
        let detail = object.view::<PodDetail>();
        let mut wanted = sources::wanted(&detail, &object.metadata.name, looks_around);
        let pod = object.view::<Pod>();
        let pull_secrets: Vec<Source> = pull_secrets(&pod).collect();
        wanted.extend(pull_secrets.iter().cloned());
        let answers = AnswersSource::of(&pod.metadata.annotations);
        wanted.extend(answers.iter().map(|answers| answers.source.clone()));
        wanted.sort();
        wanted.dedup();
        if !devices::claims_of(&pod).is_empty() {
            wanted.push(Source::Devices);
        }
        Mounting {
            wanted,
            answers,
            pull_secrets,
            detail,
            looks_around,
            fetched_at: None,
            sources: None,
            asks: false,
            is_mounted: false,
            waits_since: None,
            retry: None,
            written: WrittenFiles::new(),
            is_to_be_adopted: false,
        }
    }

    /// Of a pod that runs already, and into which somebody looks now.
    pub(crate) fn of_running(object: &Object, now: Time) -> Mounting {
        let sources = Some(Arc::new(Sources::new()));
        Mounting { is_mounted: true, fetched_at: Some(now), sources, ..Mounting::new(object, true) }
    }

    /// From now on all is fetched that its containers might look at.
    pub(crate) fn look_around(&mut self, now: Time) {
        if self.is_fetched() {
            // Of one that wanted nothing so far there is nothing yet.
            self.sources.get_or_insert_default();
            self.fetched_at.get_or_insert(now);
        }
        let all = sources::wanted(&self.detail, "", true).into_iter();
        let pull_secrets = &self.pull_secrets;
        self.wanted.retain(|source| is_claimed(source) || pull_secrets.contains(source));
        let answers = self.answers.as_ref().map(|answers| answers.source.clone());
        self.want(all.chain(answers).filter(|source| !is_claimed(source)));
        self.looks_around = true;
    }

    fn want(&mut self, more: impl IntoIterator<Item = Source>) {
        self.wanted.extend(more);
        self.wanted.sort();
        self.wanted.dedup();
    }

    /// Whether what was fetched is fetched again from time to time.
    pub(crate) fn is_looked_at_again(&self) -> bool {
        self.looks_around || self.answers.is_some()
    }

    /// The pod names another ConfigMap for its answers than it did. One that had nothing to wait for goes on
    /// while that is fetched.
    pub(crate) fn follow_answers(&mut self, answers: Option<AnswersSource>, begun: Time) {
        if self.wanted.is_empty() {
            self.sources.get_or_insert_default();
            self.fetched_at.get_or_insert(begun);
            self.is_mounted = true;
        }
        if let Some(old) = self.answers.take() {
            let mounted = sources::wanted(&self.detail, "", self.looks_around);
            self.wanted.retain(|source| *source != old.source || mounted.contains(source));
        }
        self.want(answers.iter().map(|answers| answers.source.clone()));
        self.asks |= answers.is_some();
        self.answers = answers;
        self.forget_missing_answers();
    }

    /// That it was not there is of no interest before somebody has looked again.
    fn forget_missing_answers(&mut self) {
        let (Some(Found::Missing(_)), Some(answers)) = (self.found_answers(), &self.answers) else { return };
        let source = answers.source.clone();
        self.sources.as_mut().map(|sources| Arc::make_mut(sources).remove(&source));
    }

    /// What was found where its answers stand; nothing before it was looked for.
    pub(crate) fn found_answers(&self) -> Option<&Found> {
        self.sources.as_ref()?.get(&self.answers.as_ref()?.source)
    }

    /// Whether the pod does without a source that is missing.
    pub(crate) fn does_without(&self, source: &Source) -> bool {
        let answers = self.answers.as_ref().filter(|answers| answers.source == *source);
        sources::is_optional(&self.detail, source) && answers.is_none_or(|answers| answers.is_optional)
    }

    /// A token serves until it is stale, and what was claimed is had until its pod has gone.
    pub(crate) fn has(&self, source: &Source, now: Time) -> bool {
        match self.sources.as_ref().and_then(|sources| sources.get(source)) {
            Some(Found::Token(token)) => !token.is_stale(now),
            _ => self.is_mounted && is_claimed(source),
        }
    }

    /// What a pod is told whose Secrets for registries are not all there (`getPullSecretsForPod`); its images
    /// are pulled all the same.
    pub(crate) fn lacks_pull_secrets(&self, pod: &Pod) -> Option<String> {
        let found = self.sources.as_ref()?;
        let is_missing = |secret: &Source| matches!(found.get(secret), Some(Found::Missing(_)));
        let name = |secret: Source| match secret {
            Source::Secret(name) => Some(name),
            _ => None,
        };
        let missing: Vec<String> = pull_secrets(pod).filter(is_missing).filter_map(name).collect();
        (!missing.is_empty()).then(|| {
            let missing = missing.join(", ");
            format!(
                "Unable to retrieve some image pull secrets ({missing}); attempting to pull the image may not \
                 succeed."
            )
        })
    }

    /// Whether all is there that is wanted.
    pub(crate) fn is_fetched(&self) -> bool {
        self.wanted.is_empty() || self.sources.is_some()
    }
}

/// The Secrets for the registries of a pod's images.
fn pull_secrets(pod: &Pod) -> impl Iterator<Item = Source> + '_ {
    let names = pod.spec.image_pull_secrets.iter().map(|secret| secret.name.clone());
    names.filter(|name| !name.is_empty()).map(Source::Secret)
}

/// Whether it is had for good once it is there.
fn is_claimed(source: &Source) -> bool {
    matches!(source, Source::Claim(_) | Source::Devices)
}
