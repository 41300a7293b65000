//! What etcd refuses, in Kubernetes' words (`storage/errors.go`, `storage/etcd3/errors.go`). The one place
//! where an [`etcd::StoreError`] becomes a [`Status`].

use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::{Status, StatusCause, StatusDetails};
use etcd::{self, Revision};

/// Seconds after which a reader may expect a revision that is not there yet.
const TOO_LARGE_RETRY_SECONDS: u32 = 1;

/// The answer to whoever asked something of the store.
pub(super) fn interpret(error: etcd::StoreError) -> Status {
    match error {
        etcd::StoreError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        etcd::StoreError::FutureRevision { requested, current } => too_large(requested, current),
        // Upstream's handlers pass on what is no status as it is, and without a reason.
        etcd::StoreError::Etcd(words) => Status::failure(500, "", words),
        other => Status::internal(other),
    }
}

/// The revision of a continue token is gone; `token` goes on from the same place in the newest state.
pub(super) fn continue_expired(token: &str) -> Status {
    let message = "The provided continue parameter is too old to display a consistent list result. You \
                   can start a new list without the continue parameter, or use the continue token in \
                   this response to retrieve the remainder of the results. Continuing with the provided \
                   token results in an inconsistent list - objects that were created, modified, or \
                   deleted between the time the first chunk was returned and now may show up in the \
                   list.";
    Status::expired(message).with_continue(token)
}

/// A watch from a revision whose successors are gone; `oldest` is the first that could be watched from.
pub(super) fn watch_expired(requested: Revision, oldest: Revision) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

/// A revision that has not been reached (`NewTooLargeResourceVersionError`).
pub(super) fn too_large(requested: Revision, current: Revision) -> Status {
    let message = format!("Too large resource version: {requested}, current: {current}");
    let cause = StatusCause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    Status::timeout(message).with_details(StatusDetails {
        causes: vec![cause],
        retry_after_seconds: TOO_LARGE_RETRY_SECONDS,
        ..StatusDetails::default()
    })
}

/// Options that do not go together.
pub(super) fn invalid_list_options(errors: &FieldErrors) -> Status {
    Status::invalid(&GroupVersion::new("meta.k8s.io", "v1").kind("ListOptions"), "", errors)
}

/// What was stored cannot be read: our fault or the disk's, so it is said aloud.
pub(super) fn corrupt(key: &str, error: impl std::fmt::Display) -> Status {
    tracing::error!("storage: {key}: {error}");
    Status::internal(format!("unable to decode {key}: {error}"))
}
