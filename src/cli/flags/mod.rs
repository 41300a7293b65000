//! The flags of `kubarium up` that no room has: which components there are. Those of the components stand in
//! their rooms as options (`apiserver::options`, `controllers::options`), under upstream's names.

pub mod clock;
pub mod components;
pub mod election;

pub mod values;
