//! What policies say of who asks whom.

/// What policies say of a passage, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What they say.
    pub judgement: Judgement,
    /// Who asks: a pod as `default/client`, or the address of whoever is none; empty where no policy says
    /// anything.
    pub from: String,
    /// Who is asked, likewise.
    pub to: String,
}

/// What policies say of a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No policy isolates either side.
    Free,
    /// Policies allow it, each as `NAMESPACE/NAME`.
    Allowed(Vec<String>),
    /// Policies keep it out, each as `NAMESPACE/NAME`.
    KeptOut(Vec<String>),
}

impl Verdict {
    pub(crate) fn free() -> Verdict {
        Verdict { judgement: Judgement::Free, from: String::new(), to: String::new() }
    }
}
