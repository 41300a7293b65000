//! What is wrong with a credential, or with a token that is to be made.

golang::text_error! {
    /// Why a credential proves nothing: for the log and the flow record, never for who showed it.
    pub struct BadCredential;
}

golang::text_error! {
    /// Why a token cannot be signed.
    pub struct SigningError;
}

impl BadCredential {
    /// What several authenticators say of one credential.
    pub(super) fn all(errors: &[BadCredential]) -> BadCredential {
        let texts: Vec<&str> = errors.iter().map(|error| &*error.0).collect();
        texts.join(", ").into()
    }
}
