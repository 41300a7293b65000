//! `List`: objects as they all were at one revision (`metav1.ListInterface` and the items).

use std::sync::Arc;

use super::object::Object;

/// Objects in key order, at one revision of the whole list.
#[derive(Clone, Debug)]
pub struct List {
    /// The objects, in key order.
    pub items: Arc<[Arc<Object>]>,
    /// The revision of the whole list.
    pub resource_version: u64,
    /// Where to go on; empty at the end.
    pub continue_token: String,
    /// How many come after these; known only without a selector, and only when there are more.
    pub remaining_item_count: Option<u64>,
}

impl List {
    /// Everything that was asked for.
    pub fn complete(items: Vec<Arc<Object>>, resource_version: u64) -> List {
        List {
            items: items.into(),
            resource_version,
            continue_token: String::new(),
            remaining_item_count: None,
        }
    }
}
