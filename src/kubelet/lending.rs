//! Workers are lent out to be worked on, so that no lock is held while a script is played.
//!
//! Whoever has a worker has it alone; whoever else wants that one waits, and everybody who wants another
//! one does not.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::kubelet::{Entry, Kubelet, KubeletState};
use super::pod_workers::{PodWorker, WorkerState};

/// A worker that goes back when this is dropped; also when whoever has it panics.
pub(super) struct Loan {
    kubelet: Kubelet,
    pub(super) uid: Arc<str>,
    /// None before it is made.
    pub(super) worker: Option<Box<PodWorker>>,
}

impl Loan {
    pub(super) fn new(kubelet: Kubelet, uid: Arc<str>, worker: Option<Box<PodWorker>>) -> Loan {
        Loan { kubelet, uid, worker }
    }

    pub(super) fn kubelet(&self) -> &Kubelet {
        &self.kubelet
    }
}

impl Deref for Loan {
    type Target = PodWorker;

    fn deref(&self) -> &PodWorker {
        self.worker.as_deref().expect("it is made before it is looked at")
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut PodWorker {
        self.worker.as_deref_mut().expect("it is made before it is looked at")
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let worker = self.worker.take();
        let is_wanted = self.kubelet.state().give_back(&self.uid, worker);
        if is_wanted {
            self.kubelet.shared.changed.notify_one();
        }
    }
}

impl KubeletState {
    /// One that could not be made leaves no entry behind. Whether it is wanted again.
    fn give_back(&mut self, uid: &Arc<str>, worker: Option<Box<PodWorker>>) -> bool {
        let Some(entry) = self.workers.get_mut(uid) else { return false };
        let Some(worker) = worker else {
            entry.returned.notify_one();
            self.workers.remove(uid);
            return false;
        };
        entry.pod = worker.pod.clone();
        entry.is_terminated = worker.state() == WorkerState::Terminated;
        entry.worker = Some(worker);
        entry.returned.notify_one();
        if entry.is_gone {
            self.pending.insert(uid.clone(), None);
        } else if let Some(news) = entry.news.take() {
            self.pending.entry(uid.clone()).or_insert(Some(news));
        }
        if entry.wants_turn {
            self.ready.insert(uid.clone());
        }
        self.pending.contains_key(uid) || self.ready.contains(uid)
    }

    fn entry_of(&mut self, namespace: &str, name: &str) -> Option<(&Arc<str>, &mut Entry)> {
        let is_it = |entry: &Entry| entry.namespace == namespace && entry.name == name;
        self.workers.iter_mut().find(|(_, entry)| is_it(entry))
    }
}

/// What became of an attempt to get hold of a worker.
enum Attempt<T> {
    Done(T),
    /// Somebody has it.
    Wait(Arc<tokio::sync::Notify>),
    /// The pod is not here.
    None,
}

impl Kubelet {
    /// The worker of a pod, to work on it, as soon as nobody else does; none when the pod is not here.
    pub(super) async fn borrow(&self, namespace: &str, name: &str) -> Option<Loan> {
        let take = |uid: &Arc<str>, entry: &mut Entry| {
            entry.worker.take().map(|worker| Loan::new(self.clone(), uid.clone(), Some(worker)))
        };
        self.when_back(namespace, name, take).await
    }

    /// Looks at the worker of a pod as soon as nobody works on it; none when the pod is not here.
    pub(super) async fn look<T>(
        &self,
        namespace: &str,
        name: &str,
        look: impl Fn(&PodWorker) -> T,
    ) -> Option<T> {
        self.when_back(namespace, name, |_, entry| {
            let seen = entry.worker.as_deref().map(&look)?;
            // The next one who waits may look, too.
            entry.returned.notify_one();
            Some(seen)
        })
        .await
    }

    async fn when_back<T>(
        &self,
        namespace: &str,
        name: &str,
        attempt: impl Fn(&Arc<str>, &mut Entry) -> Option<T>,
    ) -> Option<T> {
        let mut waited: Option<Arc<tokio::sync::Notify>> = None;
        loop {
            let outcome = match self.state().entry_of(namespace, name) {
                None => Attempt::None,
                Some((uid, entry)) => match attempt(uid, entry) {
                    Some(done) => Attempt::Done(done),
                    None => Attempt::Wait(entry.returned.clone()),
                },
            };
            match outcome {
                Attempt::Done(done) => return Some(done),
                Attempt::Wait(returned) => {
                    returned.notified().await;
                    waited = Some(returned);
                }
                Attempt::None => {
                    // All others who wait for it are to hear of it as well.
                    waited.iter().for_each(|returned| returned.notify_one());
                    return None;
                }
            }
        }
    }
}
