//! The flags of `kubarium up` that kube-apiserver has too, under upstream's names: a file for each area,
//! which makes the configuration of its room.

pub mod admission;
pub mod api;
pub mod audit;
pub mod authentication;
pub mod authorization;
pub mod components;
pub mod encryption;

pub mod values;
