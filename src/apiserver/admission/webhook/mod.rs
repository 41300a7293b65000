//! Admission webhooks (`k8s.io/apiserver/pkg/admission/plugin/webhook`): people's own servers are asked
//! before a write.
//!
//! In come attributes and objects; the configurations say which webhook is asked, in which version of the
//! object, and what a failure means. Out goes a changed object (mutating, one after the other) or a refusal
//! (validating, all at once).

mod source;

mod rules;
mod versions;

mod matcher;

mod hook;

mod request;
mod response;

mod call;

pub(super) mod mutating;
pub(super) mod validating;

pub(super) use matcher::{Criteria, Matched, Matcher, is_exempt};
pub(super) use request::admission_request;
pub(super) use source::WebhookSource;
pub(super) use versions::{Codec, Shown, Versions};
