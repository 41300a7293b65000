//! Where an informer reads from, with each list noted in the causal record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::indexer::{Indexer, NAMESPACE_INDEX};
use super::reflector::ListerWatcher;
use apimachinery::list::List;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use flow::{Flow, Step};

/// A source whose lists are noted. Kubelets' first ones are not: with thousands of nodes these would be most
/// of the record, and each says the same.
pub(super) struct NotedSource<L> {
    pub(super) source: L,
    pub(super) component: Arc<str>,
    pub(super) flow: Flow,
    pub(super) resource: Arc<str>,
    pub(super) has_listed: AtomicBool,
    /// Where the objects go.
    pub(super) indexer: Arc<Indexer>,
}

impl<L: ListerWatcher> ListerWatcher for NotedSource<L> {
    type Events = L::Events;

    async fn list(&self, options: &ListOptions) -> Result<List, Status> {
        let list = self.source.list(options).await?;
        let NotedSource { component, flow, indexer, .. } = self;
        let again = self.has_listed.swap(true, Ordering::Relaxed);
        if again || !component.starts_with("kubelet") {
            flow.record_with(None, || Step::Listed {
                component: component.clone(),
                resource: self.resource.clone(),
                items: u32::try_from(list.items.len()).unwrap_or(u32::MAX),
                revision: list.resource_version,
                again,
                indices: Some(indices(flow, indexer)),
            });
        }
        Ok(list)
    }

    async fn watch(&self, options: &ListOptions) -> Result<L::Events, Status> {
        self.source.watch(options).await
    }
}

fn indices(flow: &Flow, indexer: &Indexer) -> Arc<str> {
    let names = std::iter::once(NAMESPACE_INDEX.to_owned()).chain(indexer.index_names());
    flow.name(&names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use apimachinery::watch::WatchEvent;
    use clock::Clock;
    use tokio::sync::mpsc;

    use super::*;

    struct Nothing;

    impl ListerWatcher for Nothing {
        type Events = mpsc::Receiver<WatchEvent>;

        async fn list(&self, _: &ListOptions) -> Result<List, Status> {
            Ok(List::complete(vec![], 1))
        }

        async fn watch(&self, _: &ListOptions) -> Result<Self::Events, Status> {
            Err(Status::internal("nobody watches"))
        }
    }

    #[tokio::test]
    async fn lists_are_noted_but_for_the_first_of_kubelets() {
        for (component, wanted) in [("kube-scheduler", [false, true].as_slice()), ("kubelet/n", &[true])] {
            let flow = Flow::new(Clock::stepped(chrono::DateTime::UNIX_EPOCH));
            let (component, resource) = (component.into(), "pods".into());
            let (source, has_listed) = (Nothing, AtomicBool::new(false));
            let indexer = Arc::new(Indexer::new());
            indexer.add_index("by-node", |_| vec![]);
            let source = NotedSource { source, component, flow: flow.clone(), resource, has_listed, indexer };
            for _ in 0..2 {
                source.list(&ListOptions::default()).await.unwrap();
            }
            let steps = flow.trace_all().steps;
            let noted: Vec<bool> = steps
                .iter()
                .map(|step| match step.step {
                    Step::Listed { again, ref indices, .. } => {
                        assert_eq!(indices.as_deref(), Some("namespace, by-node"));
                        again
                    }
                    ref other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(noted, wanted);
        }
    }
}
