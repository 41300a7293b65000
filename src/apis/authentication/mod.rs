//! The group `authentication.k8s.io/v1`: who is this, whose is this token; answered and never kept.

use std::sync::{Arc, LazyLock};

use super::kind::{Builtin, Kind};
use super::tree::set_if_unset;

const GROUP: &str = "authentication.k8s.io";
const DEFINITION: &str = "io.k8s.api.authentication.v1";
/// `SetDefaults_TokenRequestSpec`
const DEFAULT_EXPIRATION_SECONDS: i64 = 60 * 60;

/// Its kinds.
pub const KINDS: &[&Builtin] = &[&SELF_SUBJECT_REVIEWS, &TOKEN_REVIEWS];

/// `selfsubjectreviews`: who am I (`kubectl auth whoami`).
pub static SELF_SUBJECT_REVIEWS: Builtin =
    LazyLock::new(|| review("SelfSubjectReview", "selfsubjectreviews"));

/// `tokenreviews`: whose is this token.
pub static TOKEN_REVIEWS: Builtin = LazyLock::new(|| review("TokenReview", "tokenreviews"));

/// The body of `serviceaccounts/token`; no resource of its own.
pub static TOKEN_REQUESTS: Builtin = LazyLock::new(|| {
    Kind::builtin(GROUP, "v1", "TokenRequest", "tokenrequests", DEFINITION)
        .defaulted(|request| set_if_unset(request, "spec.expirationSeconds", DEFAULT_EXPIRATION_SECONDS))
        .into()
});

fn review(kind: &str, plural: &str) -> Arc<Kind> {
    Kind::builtin(GROUP, "v1", kind, plural, DEFINITION).cluster_scoped().only(&["create"]).into()
}
