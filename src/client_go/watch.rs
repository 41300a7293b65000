//! `ListWatch`: what a reflector lists and watches (`cache.ListWatch`).
//! Next: src/client_go/reflector.rs

use std::sync::Arc;

use tokio::sync::mpsc;

use super::client::Client;
use super::reflector::ListerWatcher;
use apimachinery::fields::FieldSelector;
use apimachinery::list::List;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apimachinery::status::Status;
use apimachinery::watch::WatchEvent;
use apis::kind::Kind;

/// Lists and watches the objects of a kind, in one namespace or all, with one field selector
/// (`cache.ListWatch`).
pub struct ListWatch {
    client: Client,
    kind: Arc<Kind>,
    namespace: String,
    fields: FieldSelector,
}

impl ListWatch {
    /// An empty namespace means all.
    pub fn new(client: Client, kind: Arc<Kind>, namespace: &str, fields: FieldSelector) -> ListWatch {
        ListWatch { client, kind, namespace: namespace.to_owned(), fields }
    }

    /// The reflector's options, and which objects.
    fn select(&self, options: &ListOptions) -> ListOptions {
        let predicate = Predicate { fields: self.fields.clone(), ..Predicate::default() };
        ListOptions { predicate, ..options.clone() }
    }
}

impl ListerWatcher for ListWatch {
    type Events = mpsc::Receiver<WatchEvent>;

    async fn list(&self, options: &ListOptions) -> Result<List, Status> {
        self.client.list(&self.kind, &self.namespace, &self.select(options)).await
    }

    async fn watch(&self, options: &ListOptions) -> Result<Self::Events, Status> {
        self.client.watch(&self.kind, &self.namespace, &self.select(options)).await
    }
}
