//! `make bench-hot`: the hot paths, each by itself. An argument picks those whose name contains it.
//!
//! One program, since each that is linked holds all of kubarium.

mod create;
mod object;
mod patch;
mod pod;
mod schedule;
mod store;
mod watch;

criterion::criterion_main!(
    create::benches,
    object::benches,
    patch::benches,
    schedule::benches,
    store::benches,
    watch::benches
);
