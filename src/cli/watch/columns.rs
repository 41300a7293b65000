//! Columns of a table on a screen that may be narrower than it.

use ratatui_core::layout::Constraint;
use ratatui_core::text::Text;

/// The width of a last column: what the others leave.
pub(super) const REST: u16 = u16::MAX;

/// Columns as wide as they want to be, from the left on as far as there is room. The gap behind a column is a
/// part of it: gaps of their own would take room from the columns of a narrow screen.
pub(super) fn fitted<const N: usize>(mut room: u16, wanted: [u16; N]) -> [Constraint; N] {
    wanted.map(|wanted| {
        let width = wanted.min(room);
        room -= width;
        Constraint::Length(width)
    })
}

/// A number, or the heading of some, at the right of its column.
pub(super) fn right(text: impl std::fmt::Display) -> Text<'static> {
    Text::from(format!("{text} ")).right_aligned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_are_cut_at_the_right() {
        let lengths = |widths: [u16; 3]| widths.map(Constraint::Length);
        assert_eq!(fitted(40, [10, 5, REST]), lengths([10, 5, 25]));
        assert_eq!(fitted(12, [10, 5, REST]), lengths([10, 2, 0]));
        assert_eq!(fitted(0, [10, 5, REST]), lengths([0; 3]));
    }
}
