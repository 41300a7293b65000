//! Why a node is not as somebody wants it.

/// Why there is no such node, or why it can have no kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal(pub String);

impl std::fmt::Display for NodeRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for NodeRefusal {}

impl From<String> for NodeRefusal {
    fn from(why: String) -> NodeRefusal {
        NodeRefusal(why)
    }
}
