//! The integration tests: one binary, a module per capability.

mod support;

/// Tests have the allocator that the program has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod dependencies;
mod documents;
mod examples;
mod readme;
mod tidy;

mod apart;
mod apiserver;
mod authorization;
mod cases;
mod conformance;
mod controller_runtime;
mod controllers;
mod custom_resources;
mod data_dir;
mod envtest;
mod etcd_api;
mod etcd_store;
mod jobs;
mod nodes;
mod ranges_and_periods;
mod record;
mod sets;
mod stages;

mod cli;
mod flags;
mod logs;

mod cluster;
mod convergence;
mod crash;
mod explore;
mod faults;
mod forks;
mod fuzz;
mod garbage;
mod hammer;
mod handles;
mod parallel;
mod test_macro;

mod scraped;
mod security;
mod seeing;
mod systems;
mod talking;
mod tracing;

mod javascript;
mod kubectl;
mod learn;
mod network;
mod packages;
mod page;
mod python;

mod upstream;
