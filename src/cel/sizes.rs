//! How large values can become, and what is known of an expression while its cost is estimated.

use std::collections::BTreeMap;

/// How large a value can become, by its declaration.
#[derive(Clone, Debug, PartialEq)]
pub enum Size {
    /// A value without length.
    Scalar,
    /// A text of at most so many bytes.
    Text(u64),
    /// At most so many elements or entries.
    Many(u64, Box<Size>),
    /// At most so many entries, whose keys have a size, too; where it is open, every field is an element.
    Keyed {
        /// How many.
        most: u64,
        /// Of each key.
        key: Box<Size>,
        /// Of each element.
        element: Box<Size>,
        /// Whether its elements are found as fields, whatever they are called.
        is_open: bool,
    },
    /// An object.
    Fields(BTreeMap<String, Size>),
}

/// The least and the most elements or characters.
pub(super) type SizeRange = (u64, u64);

/// Nothing is known.
pub(super) const UNKNOWN: SizeRange = (0, u64::MAX);
pub(super) const ONE: SizeRange = (1, 1);
const KEY: &Size = &Size::Scalar;

pub(super) const LIST: u64 = 10;
/// Where the declaration of a value is found (`AstNode.Path`).
#[derive(Clone, Copy)]
pub(super) enum SizePlace<'s> {
    /// It has no path.
    Nowhere,
    At(&'s Size),
    /// Its path leads to nothing that is declared.
    Lost,
}

/// The sizes of the keys and values that a literal or comprehension makes.
#[derive(Clone, Copy)]
pub(super) struct EntrySizes {
    pub key: SizeRange,
    pub value: SizeRange,
}

/// What is known of an expression.
#[derive(Clone, Copy)]
pub(super) struct Estimate<'s> {
    pub cost: u64,
    pub size: Option<SizeRange>,
    pub place: SizePlace<'s>,
    pub entries: Option<EntrySizes>,
}

/// Where paths begin.
#[derive(Clone, Copy)]
pub(super) struct SizeRoot<'s> {
    pub size: &'s Size,
    /// What has no path of its own is taken for the variable: so it is for custom resources.
    pub is_lax: bool,
}

pub(super) enum SizeStep<'n> {
    Items,
    Keys,
    Field(&'n str),
    Unknown,
}

impl Size {
    /// `MaxElements`, which upstream leaves at zero for what is neither text nor collection.
    fn most(&self) -> u64 {
        match self {
            Size::Text(most) | Size::Many(most, _) | Size::Keyed { most, .. } => *most,
            Size::Scalar | Size::Fields(_) => 0,
        }
    }
}

impl<'s> SizePlace<'s> {
    /// The first name of a path is that of the variable, whatever it is.
    pub(super) fn step(self, root: SizeRoot<'s>, step: &SizeStep) -> SizePlace<'s> {
        match (self, step) {
            (SizePlace::Nowhere, _) if root.is_lax => SizePlace::At(root.size),
            (SizePlace::At(Size::Many(_, element) | Size::Keyed { element, .. }), SizeStep::Items) => {
                SizePlace::At(element)
            }
            (SizePlace::At(Size::Keyed { key, .. }), SizeStep::Keys) => SizePlace::At(key),
            (SizePlace::At(Size::Keyed { element, is_open: true, .. }), SizeStep::Field(_)) => {
                SizePlace::At(element)
            }
            (SizePlace::At(Size::Many(..)), SizeStep::Keys) => SizePlace::At(KEY),
            (SizePlace::At(Size::Fields(fields)), SizeStep::Field(name)) => {
                fields.get(*name).map_or(SizePlace::Lost, SizePlace::At)
            }
            _ => SizePlace::Lost,
        }
    }

    pub(super) fn size(self) -> Option<SizeRange> {
        match self {
            SizePlace::At(size) => Some((0, size.most())),
            SizePlace::Nowhere | SizePlace::Lost => None,
        }
    }
}

impl EntrySizes {
    pub(super) fn union(self, other: Option<EntrySizes>) -> Option<EntrySizes> {
        let other = other?;
        Some(EntrySizes { key: union(self.key, other.key), value: union(self.value, other.value) })
    }

    /// Of a list whose elements are of this size.
    pub(super) fn of_list(value: SizeRange) -> EntrySizes {
        EntrySizes { key: ONE, value }
    }
}

impl<'s> Estimate<'s> {
    /// A call's: it has no path.
    pub(super) fn call(cost: u64, size: Option<SizeRange>) -> Estimate<'s> {
        Estimate { cost, size, place: SizePlace::Nowhere, entries: None }
    }

    pub(super) fn range(&self) -> SizeRange {
        self.size.unwrap_or(UNKNOWN)
    }
}

pub(super) fn union(left: SizeRange, right: SizeRange) -> SizeRange {
    (left.0.min(right.0), left.1.max(right.1))
}
