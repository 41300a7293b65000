//! Deletecollection (`registry.Store.DeleteCollection`): a list, and a delete for each of its objects.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use super::{Registry, Validating};
use crate::request::RequestContext;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::{DeleteOptions, ListOptions};
use apimachinery::status::Status;
use apis::kind::Kind;

/// So many deletes are under way at once: enough for the store to write them together.
const WORKERS: usize = 16;
/// So many objects are listed at once when the client sets no limit.
const PAGE: usize = 10_000;

impl Registry {
    /// Deletes what `list_options` select; answers with what was selected. Not atomic: after an error some
    /// are gone.
    ///
    /// # Errors
    /// The first that a delete meets, other than 404.
    pub async fn delete_collection(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        namespace: &str,
        delete_options: &DeleteOptions,
        list_options: &ListOptions,
        validating: &dyn Validating,
    ) -> Result<List, Status> {
        let mut options = list_options.clone();
        let has_limit = options.limit.is_some_and(|limit| limit > 0);
        options.limit = if has_limit { options.limit } else { Some(PAGE) };
        let mut items: Vec<Arc<Object>> = Vec::new();
        loop {
            let mut list = self.list(kind, namespace, &options).await?;
            self.delete_all(ctx, kind, &list, delete_options, validating).await?;
            if has_limit {
                return Ok(list);
            }
            items.extend(list.items.iter().cloned());
            if list.continue_token.is_empty() {
                list.items = items.into();
                return Ok(list);
            }
            options.continue_token = Some(list.continue_token);
            (options.resource_version, options.resource_version_match) = (None, None);
        }
    }

    async fn delete_all(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        list: &List,
        options: &DeleteOptions,
        validating: &dyn Validating,
    ) -> Result<(), Status> {
        let items = list.items.iter().cloned();
        let deletes = items.map(|object| self.delete_one(ctx, kind, object, options, validating));
        stream::iter(deletes).buffer_unordered(WORKERS).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    async fn delete_one(
        &self,
        ctx: &RequestContext,
        kind: &Arc<Kind>,
        object: Arc<Object>,
        options: &DeleteOptions,
        validating: &dyn Validating,
    ) -> Result<(), Status> {
        let metadata = &object.metadata;
        match self.delete(ctx, kind, &metadata.namespace, &metadata.name, options, validating).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(()),
        }
    }
}
