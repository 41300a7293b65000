//! Ports that scripts listen to.

/// So many ports may one script listen to; of more the later ones are not there.
pub(crate) const MAX_LISTENERS: usize = 64;

/// A port that a script listens to from some time on.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptListener {
    /// Of TCP.
    pub port: u16,
    /// And what it does there.
    pub what: Listens,
}

/// What a script says to who connects.
#[derive(Clone, Debug, PartialEq)]
pub enum Listens {
    /// The files of a folder, over HTTP.
    Files(String),
    /// Those of a folder, as python's `http.server` says them.
    Python(String),
    /// What it had read when it began to listen (`nc -l`).
    Says(Vec<u8>),
}
