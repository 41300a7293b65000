//! What a request does with an object, as rules and reviews name it.

/// `admission.Operation`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object or subresource.
    Create,
    /// PUT and PATCH.
    Update,
    /// Also each object of a deletecollection.
    Delete,
    /// exec, attach, portforward, proxy.
    Connect,
}

impl Operation {
    /// As in rules and reviews.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}
