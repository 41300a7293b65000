//! The queues: how deep each is, and what its workers hold.

use std::cmp::Reverse;

use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Stylize};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span, Text};
use ratatui_widgets::table::{Row, Table};

use super::columns::{REST, fitted, right};
use super::picture::{LivePicture, LiveQueue};

/// Queues that are shown at most; of further ones how many there are.
pub(super) const MAX_QUEUES: usize = 8;
/// Keys that a worker holds which are named for each queue.
const MAX_KEYS: usize = 3;
/// The longest bar. A key takes a column of it, or less where a queue holds more keys.
const MAX_BAR: usize = 10;
/// Room for names where they are short: the heading is not to jump from frame to frame.
const MIN_NAME: usize = 12;
/// The widest name of a queue; of a longer one the beginning is shown.
const MAX_NAME: usize = 34;

type NamedQueue<'a> = (&'a String, &'a LiveQueue);

/// Rows that a table of so many queues wants, with its heading.
pub(super) fn rows_wanted(queues: usize) -> usize {
    1 + queues.min(MAX_QUEUES) + usize::from(queues > MAX_QUEUES)
}

/// The deepest first, then who moved last.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture) {
    let mut queues: Vec<NamedQueue<'_>> = picture.queues.iter().collect();
    queues.sort_by_key(|(_, queue)| Reverse((depth(queue), queue.moved)));
    let shown = shown(queues.len(), usize::from(area.height).saturating_sub(1));
    let hidden = queues.len() - shown;
    queues.truncate(shown);
    let name = queues.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let name = name.clamp(MIN_NAME, MAX_NAME) as u16 + 1;
    let widths = fitted(area.width, [name, 6, MAX_BAR as u16 + 1, 7, REST]);
    let scale = queues.iter().map(|(_, queue)| depth(queue)).max().unwrap_or_default().max(MAX_BAR);
    let heading =
        Row::new(["queue".into(), right("wait"), "depth".into(), right("done"), "at work on".into()]);
    let rows = queues.iter().map(|queue| queue_row(queue, scale));
    let table = Table::new(rows, widths).column_spacing(0).header(heading.reversed());
    frame.render_widget(table, area);
    if let Some(row) = area.rows().nth(1 + shown).filter(|_| hidden > 0) {
        frame.render_widget(format!("and {hidden} more queues").dim(), row);
    }
}

/// How many of them there is room for, beside the row which says that there are more.
fn shown(queues: usize, rows: usize) -> usize {
    let shown = queues.min(MAX_QUEUES);
    if shown == queues && queues <= rows { queues } else { shown.min(rows.saturating_sub(1)) }
}

fn depth(queue: &LiveQueue) -> usize {
    queue.waiting.len() + queue.working.len()
}

fn queue_row<'a>((name, queue): &NamedQueue<'a>, scale: usize) -> Row<'a> {
    let keys: Vec<&str> = queue.working.values().take(MAX_KEYS).map(String::as_str).collect();
    let more = queue.working.len().saturating_sub(MAX_KEYS);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Row::new([
        Text::from(name.as_str()),
        right(queue.waiting.len()),
        Text::from(bar(queue, scale)),
        right(queue.done),
        Text::from(keys.join(", ") + &more),
    ])
}

/// What is at work, and behind it what waits. Whatever there is of either is seen.
fn bar(queue: &LiveQueue, scale: usize) -> Line<'static> {
    let columns = |keys: usize| (keys * MAX_BAR).div_ceil(scale);
    let working = Span::from("▒".repeat(columns(queue.working.len()))).fg(Color::Green);
    let waiting = Span::from("█".repeat(columns(queue.waiting.len()))).fg(Color::Yellow);
    Line::from(vec![working, waiting])
}

#[cfg(test)]
mod tests {
    use flow::StepId;

    use super::*;

    fn queue(waiting: usize, working: usize) -> LiveQueue {
        let keys = |count: usize| (0..count).map(|number| number.to_string());
        let working = (1..).map(StepId).zip(keys(working)).collect();
        LiveQueue { waiting: keys(waiting).collect(), working, ..LiveQueue::default() }
    }

    #[test]
    fn a_bar_has_a_column_for_each_key_until_there_are_more_than_fit() {
        assert_eq!(bar(&queue(3, 2), MAX_BAR).to_string(), "▒▒███");
        assert_eq!(bar(&queue(0, 0), MAX_BAR).to_string(), "");
        assert_eq!(bar(&queue(400, 1), 401).to_string(), format!("▒{}", "█".repeat(MAX_BAR)));
    }

    #[test]
    fn queues_without_room_are_counted_and_the_others_shown() {
        let room_for = |queues, rows| shown(queues, rows);
        assert_eq!((room_for(3, 9), room_for(8, 8), room_for(9, 9)), (3, 8, 8));
        assert_eq!((room_for(3, 2), room_for(3, 0), room_for(40, 40)), (1, 0, MAX_QUEUES));
        assert_eq!((rows_wanted(0), rows_wanted(8), rows_wanted(9)), (1, 9, 10));
    }
}
