//! Admission policies (`k8s.io/apiserver/pkg/admission/plugin/policy`): what people refuse and change in CEL,
//! without a server of their own.
//!
//! A policy says what, a binding where and with which parameters; a policy without a binding does nothing.

mod binding;
mod params;

pub(super) mod mutating;
pub(super) mod validating;

mod evaluation;
mod mutation;
