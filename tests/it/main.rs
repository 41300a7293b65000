//! The integration tests: one binary, a module per capability.

mod apiserver;
mod nodes;
mod tidy;
