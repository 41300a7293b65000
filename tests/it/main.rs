//! The integration tests: one binary, a module per capability.

mod support;

mod tidy;

mod apiserver;
mod nodes;

mod kubectl;
