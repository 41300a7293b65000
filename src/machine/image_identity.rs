//! The certificate for `localhost` that agnhost's image has, or makes when it starts: who serves over TLS
//! without one of its own shows it. Nobody trusts it.

use std::sync::{Arc, LazyLock};

/// A certificate and its key, as PEM. Each process makes its own.
pub struct ImageIdentity {
    /// The certificate.
    pub certificate: Arc<Vec<u8>>,
    /// Its key.
    pub key: Arc<Vec<u8>>,
}

/// The one that all images share; nothing where no key can be made.
pub static LOCALHOST: LazyLock<Option<ImageIdentity>> = LazyLock::new(|| {
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names);
    made.ok().map(|made| ImageIdentity {
        certificate: Arc::new(made.cert.pem().into_bytes()),
        key: Arc::new(made.signing_key.serialize_pem().into_bytes()),
    })
});
