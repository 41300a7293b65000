//! The bound on entries of updates (`capManagersManager`): beyond it the oldest are merged.

use std::collections::BTreeMap;

use super::managed::{Managed, ManagedFieldsOperation, ManagerEntry, ManagerId};

/// So many updaters are kept apart.
const MAX_UPDATE_MANAGERS: usize = 10;
/// Who then owns what the oldest owned.
const OLD_UPDATES_MANAGER: &str = "ancient-changes";

/// Merges the oldest updaters of each version into one until there are few enough. The first of a version is
/// left alone as long as there is no second.
pub(super) fn cap_update_managers(mut managed: Managed) -> Managed {
    let is_update = |entry: &&ManagerEntry| entry.id.operation == ManagedFieldsOperation::Update;
    if managed.0.iter().filter(is_update).count() <= MAX_UPDATE_MANAGERS {
        return managed;
    }
    let mut updaters: Vec<(Option<String>, ManagerId)> =
        managed.0.iter().filter(is_update).map(|entry| (entry.time.clone(), entry.id.clone())).collect();
    let mut length = updaters.len();
    updaters
        .sort_by(|left, right| left.0.cmp(&right.0).then_with(|| left.1.sort_key().cmp(&right.1.sort_key())));
    let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
    for (time, id) in updaters {
        if length <= MAX_UPDATE_MANAGERS {
            break;
        }
        let bucket = ManagerId {
            manager: OLD_UPDATES_MANAGER.into(),
            operation: ManagedFieldsOperation::Update,
            api_version: id.api_version.clone(),
            subresource: String::new(),
        };
        let Some(first) = first_of_version.get(&id.api_version) else {
            first_of_version.insert(id.api_version.clone(), id);
            continue;
        };
        let into = if managed.position(&bucket).is_some() { &bucket } else { first };
        let all = managed.set_of(into).union(&managed.set_of(&id));
        let into = into.clone();
        managed.0.retain(|entry| !entry.id.is_same(&into) && !entry.id.is_same(&id));
        managed.put(ManagerEntry::new(bucket, time, all));
        length -= 1;
    }
    managed
}
