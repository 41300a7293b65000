//! Authentication: who is asking (`k8s.io/apiserver/pkg/authentication`).
//!
//! In comes a request, out goes a [`UserInfo`] from the first authenticator that knows the credentials, and
//! what each that was asked before had to say. When none knows them the request is refused with 401; a
//! request without any is anonymous, where that is allowed. One file per authenticator; `union` lists them in
//! upstream's order. What a user may do is none of its business.
//!
//! The components of this process (scheduler, controller manager, kubelets) are no strangers: they say who
//! they are in the request's extensions, which nothing on a socket can fill, and carry no credentials.

pub mod authenticator;
pub mod outcome;
pub mod remarks;

pub mod config_error;
pub mod errors;
pub mod options;

pub mod config;
pub mod reviews;
pub mod union;

pub mod anonymous;
pub mod in_process;

pub mod basic_auth;
pub mod request_header;
pub mod x509;

pub mod bearer_token;
pub mod token_cache;

pub mod bootstrap_token;
pub mod service_account;
pub mod token_file;

pub mod oidc;
pub mod webhook;

pub mod metrics;

mod csv_file;
mod es512;
pub mod extra;
mod first_version;
mod jwt;
mod secrets;

pub use authenticator::{RequestAuthenticator, Response, TokenAuthenticator, audience_agnostic};
pub use config::{Authentication, AuthenticatorParts};
pub use config_error::AuthenticationConfigError;
pub use errors::{BadCredential, SigningError};
pub use options::AuthenticationOptions;
pub use outcome::{Authenticated, CredentialsRefused, Said};
pub use union::Authenticators;
