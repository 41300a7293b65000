//! The list of tables, in the order in which they are made: the definitions first, since others go through them.

use crate::checkout::{Checkout, Problem};
use crate::{definitions, discovery, feature_gates, go_facts, merges, protobuf};

/// How a table is made from the checkout and from what it was before.
type Make = fn(&Checkout, &str) -> Result<String, Problem>;

/// A table of our tree.
pub(crate) struct Made {
    /// Where it stands.
    pub path: &'static str,
    /// How it is made.
    pub make: Make,
}

/// Every table that is made.
pub(crate) fn all() -> Vec<Made> {
    let made = |path, make: Make| Made { path, make };
    vec![
        made(definitions::PATH, definitions::make),
        made("manifests/schemas/list-types.tsv", merges::list_types),
        made("manifests/schemas/patch.tsv", merges::patch),
        made("src/apimachinery/managed_fields/tests/published.tsv", merges::published),
        made("manifests/schemas/defaults.tsv", go_facts::defaults),
        made("manifests/schemas/enums.tsv", go_facts::enums),
        made("manifests/schemas/go-types.tsv", go_facts::types),
        made("manifests/schemas/presence.tsv", go_facts::presence),
        made("manifests/schemas/protobuf.tsv", protobuf::make),
        made("src/apimachinery/feature_gates.txt", feature_gates::make),
        made("tests/fixtures/discovery.tsv", discovery::make),
    ]
}
