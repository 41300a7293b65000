//! The command line of kubarium.
//! Next: cluster.rs

fn main() {}
