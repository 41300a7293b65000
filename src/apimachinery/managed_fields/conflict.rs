//! Conflicts: others own what an apply would change (`merge.Conflicts`,
//! `managedfields/internal/conflict.go`).

use std::collections::BTreeSet;

use super::managed::ManagerId;
use super::path::{Path, print_path};
use super::set::Set;
use crate::status::{Status, StatusCause, StatusDetails};

/// One field and one of its owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: ManagerId,
    /// The field.
    pub path: Path,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflicts {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields, whoever owns them.
    pub fn to_set(&self) -> Set {
        let mut set = Set::default();
        self.0.iter().for_each(|conflict| set.insert(&conflict.path));
        set
    }

    /// Those that are not about one of these fields.
    pub fn without(mut self, fields: &Set) -> Conflicts {
        self.0.retain(|conflict| !fields.has(&conflict.path));
        self
    }

    /// 409 with a cause per conflict (`NewApplyConflict`).
    pub fn to_status(mut self) -> Status {
        self.0.sort_by(|left, right| left.manager.sort_key().cmp(&right.manager.sort_key()));
        let causes = self.0.iter().map(|conflict| StatusCause {
            reason: "FieldManagerConflict".into(),
            message: format!("conflict with {}", conflict.manager.print()),
            field: print_path(&conflict.path),
        });
        let details = StatusDetails { causes: causes.collect(), ..StatusDetails::default() };
        Status::failure(409, "Conflict", self.message()).with_details(details)
    }

    fn message(&self) -> String {
        if let [one] = &self.0[..] {
            let (manager, path) = (one.manager.print(), print_path(&one.path));
            return format!("Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        let mut lines = Vec::new();
        let mut named = BTreeSet::new();
        for conflict in &self.0 {
            let manager = conflict.manager.print();
            if named.insert(manager.clone()) {
                lines.push(format!("conflicts with {manager}:"));
            }
            lines.push(format!("- {}", print_path(&conflict.path)));
        }
        format!("Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }
}
