//! The certificate that agnhost's image has for `localhost`: who serves over TLS without one of its own shows
//! it. Nobody trusts it.

use std::sync::{Arc, LazyLock};

/// A certificate and its key, as PEM. Each process makes its own.
pub(crate) struct ImageIdentity {
    pub(crate) certificate: Arc<Vec<u8>>,
    pub(crate) key: Arc<Vec<u8>>,
}

/// Nothing where no key can be made.
pub(crate) static LOCALHOST: LazyLock<Option<ImageIdentity>> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]);
    made.ok().map(|made| ImageIdentity {
        certificate: Arc::new(made.cert.pem().into_bytes()),
        key: Arc::new(made.signing_key.serialize_pem().into_bytes()),
    })
});
