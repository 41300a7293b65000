//! `ContainerConfigError`: why nobody knows what a container finds.

golang::text_error! {
    /// The message of `CreateContainerConfigError`.
    pub struct ContainerConfigError;
}
