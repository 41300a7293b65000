//! The finalizers that need no domain (`metav1.FinalizerOrphanDependents` and its neighbours).

/// The garbage collector is to cut the dependents loose first.
pub const ORPHAN: &str = "orphan";
/// The garbage collector is to delete the dependents first.
pub const FOREGROUND: &str = "foregroundDeletion";

/// Whether a name has no domain, and is none of those that need none.
pub fn lacks_domain(name: &str) -> bool {
    !name.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&name)
}
