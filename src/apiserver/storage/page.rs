//! One page of a list: what matches, in key order, up to the limit, and the token for the rest.

use std::sync::Arc;

use super::continue_token::ContinueToken;
use super::request::ListRequest;
use apimachinery::list::List;
use apimachinery::object::Object;
use etcd::Revision;

/// A page being filled.
pub(super) struct ListedPage<'a> {
    request: &'a ListRequest,
    field_names: Vec<&'a str>,
    items: Vec<Arc<Object>>,
    last_key: String,
    /// How many keys come after the page; none while the end has not been seen to be elsewhere.
    rest: Option<usize>,
}

impl<'a> ListedPage<'a> {
    /// An empty page.
    pub(super) fn new(request: &'a ListRequest, field_names: Vec<&'a str>) -> ListedPage<'a> {
        ListedPage { request, field_names, items: Vec::new(), last_key: String::new(), rest: None }
    }

    /// Whether the limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.request.limit.is_some_and(|limit| self.items.len() >= limit)
    }

    /// Takes the next object, if it matches. Not for a full page.
    pub(super) fn offer(&mut self, key: &str, object: Arc<Object>) {
        if self.request.limit.is_some() {
            key.clone_into(&mut self.last_key);
        }
        if self.request.selection.matches(&object, &self.field_names) {
            self.items.push(object);
        }
    }

    /// There are `rest` more keys after this page.
    pub(super) fn cut(&mut self, rest: usize) {
        self.rest = Some(rest).filter(|rest| *rest > 0);
    }

    /// The key after the last one taken.
    pub(super) fn next_key(&self) -> String {
        format!("{}\0", self.last_key)
    }

    /// The page as it is answered. How many remain is told only where all keys match.
    pub(super) fn finish(self, revision: Revision) -> List {
        let mut list = List::complete(vec![], revision);
        if let Some(rest) = self.rest {
            let start = self.next_key()[self.request.selection.prefix().len()..].to_owned();
            list.continue_token = ContinueToken { revision: Some(revision), start }.encode();
            let countable = self.request.selection.predicate.is_everything();
            list.remaining_item_count = countable.then_some(rest as u64);
        }
        list.items = self.items.into();
        list
    }
}
