//! Kinds whose objects are not kept but told each time (`registry/core/componentstatus`).

use std::sync::Arc;

use super::conversion::object_of;
use apimachinery::list::List;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::status::Status;
use apis::kind::Kind;

/// One of them.
pub(super) fn get(kind: &Kind, name: &str) -> Result<Arc<Object>, Status> {
    let found = objects(kind)?.into_iter().find(|object| object.metadata.name == name);
    found.ok_or_else(|| Status::not_found(&kind.group_resource(), name))
}

/// Those that the options select. They are of no revision.
pub(super) fn list(kind: &Kind, options: &ListOptions) -> Result<List, Status> {
    let (mut objects, names) = (objects(kind)?, kind.field_names());
    objects.retain(|object| options.predicate.matches(object, &names));
    Ok(List::complete(objects, 0))
}

fn objects(kind: &Kind) -> Result<Vec<Arc<Object>>, Status> {
    let trees = kind.derived.map(|objects| objects()).unwrap_or_default();
    trees.iter().map(|tree| object_of(kind, tree, 0)).collect()
}
