//! The screen: a picture as tables and lines, as many as there is room for.

use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::{Color, Style, Stylize};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span, Text};
use serde_json::Value;

use super::picture::{LivePicture, SeenStep};
use super::{lane_table, queue_table};

/// Who is held, of so many.
const MAX_HELD: usize = 4;
/// Rows that are kept for what happened last, with their heading, where the queues would take them all.
const MIN_ROWS_OF_STEPS: usize = 4;

/// All of it. What is new is counted from frame to frame.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &mut LivePicture, held: &Value, name: &str) {
    let held_lines = held_lines(held);
    let queues = queue_table::rows_wanted(picture.queues.len());
    let heights = heights(frame.area().height.into(), held_lines.len(), queues);
    let heights = heights.map(|height| Constraint::Length(height as u16));
    let areas: [Rect; 6] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(heading(picture, held, name), areas[0]);
    lane_table::draw(frame, areas[1], picture);
    queue_table::draw(frame, areas[2], picture);
    frame.render_widget(Text::from(held_lines), areas[3]);
    draw_steps(frame, areas[4], picture);
    frame.render_widget(footer(), areas[5]);
    picture.drawn();
}

/// Of the heading, the lanes, the queues, who is held, the steps and the footer. A small screen has room for
/// heading, footer, lanes and who is held before the last steps, and for queues behind these.
fn heights(mut rows: usize, held: usize, queues: usize) -> [usize; 6] {
    let mut take = |wanted: usize, kept: usize| {
        let taken = wanted.min(rows.saturating_sub(kept));
        rows -= taken;
        taken
    };
    let heading = take(1, 0);
    let footer = take(1, 0);
    let lanes = take(lane_table::ROWS, 0);
    let held = take(held, 0);
    let queues = take(queues, MIN_ROWS_OF_STEPS);
    let steps = take(usize::MAX, 0);
    [heading, lanes, queues, held, steps, footer]
}

fn heading<'a>(picture: &LivePicture, held: &'a Value, name: &'a str) -> Line<'a> {
    let state = match (held["refused"].as_str(), held["paused"] == true) {
        (Some(why), _) => why.red().bold(),
        (None, true) => "held between two steps".yellow().bold(),
        (None, false) => "running".green(),
    };
    let missed = if picture.missed == 0 { String::new() } else { format!(", {} forgotten", picture.missed) };
    let step = format!("   step {}{missed}   ", picture.newest.0);
    Line::from(vec!["kubarium watch".bold(), "   ".into(), name.bold().cyan(), step.into(), state])
}

fn footer() -> Line<'static> {
    let keys = [("space", " hold or go on   "), ("n", " one step   "), ("s", " a stage   "), ("q", " quit")];
    keys.into_iter().flat_map(|(key, what)| [key.bold(), what.into()]).collect()
}

fn held_lines(held: &Value) -> Vec<Line<'_>> {
    let all = held["held"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = held["heldCount"].as_u64().unwrap_or_default();
    let hidden = count.saturating_sub(MAX_HELD as u64);
    let more = (hidden > 0).then(|| Line::from(format!("and {hidden} more are held")));
    all.iter().take(MAX_HELD).map(held_line).chain(more).collect()
}

fn held_line(step: &Value) -> Line<'_> {
    let number = step["number"].as_u64().unwrap_or_default();
    let words = step["words"].as_str().unwrap_or_default();
    Line::from(vec![format!("held {number:>5}  ").fg(Color::Yellow), words.into()])
}

/// What happened last, the newest at the bottom.
fn draw_steps(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture) {
    let [heading, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.buffer_mut().set_style(heading, Style::new().reversed());
    frame.render_widget(Line::from("steps"), heading);
    let skip = picture.told.len().saturating_sub(rows.height.into());
    let lines: Text<'_> = picture.told.iter().skip(skip).map(told_line).collect();
    frame.render_widget(lines, rows);
}

fn told_line(step: &SeenStep) -> Line<'_> {
    let component = Span::from(step.component.as_str()).fg(lane_table::colour(step.lane));
    Line::from(vec![component, ": ".into(), step.words.as_str().into()])
}

#[cfg(test)]
mod tests {
    use flow::{Step, StepId, TraceStep};
    use ratatui_core::backend::TestBackend;
    use ratatui_core::buffer::Buffer;
    use ratatui_core::terminal::Terminal;
    use serde_json::json;

    use super::*;

    fn picture() -> LivePicture {
        let step = |id: u64, step: Step| TraceStep { id: StepId(id), cause: None, at_microseconds: id, step };
        let queued = |id: u64, queue: String| {
            let queue = queue.as_str().into();
            step(id, Step::Enqueued { queue, key: "ns/a".into(), retries: 0, delay_milliseconds: 0 })
        };
        let mut picture = LivePicture::default();
        picture.add((1..=12).map(|id| queued(id, format!("queue-{id}"))).collect(), 0);
        let (controller, key) = ("queue-3".into(), "ns/a".into());
        picture.add(vec![step(13, Step::ReconcileStarted { controller, key, coalesced: 0 })], 0);
        picture
    }

    fn drawn(picture: &mut LivePicture, held: &Value, (columns, rows): (u16, u16)) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal.draw(|frame| draw(frame, picture, held, "dev")).unwrap();
        terminal.backend().buffer().clone()
    }

    fn lines(buffer: &Buffer) -> Vec<String> {
        let rows = buffer.content().chunks(buffer.area().width.into());
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn a_screen_of_any_size_shows_what_matters_most() {
        let held = json!({"paused": true, "heldCount": 9, "held": [{"number": 4, "words": "before"}]});
        for (columns, rows) in [(80, 40), (80, 24), (20, 10), (1, 1), (200, 3), (3, 200)] {
            let lines = lines(&drawn(&mut picture(), &held, (columns, rows)));
            let cut = |text: &str| text.chars().take(columns.into()).collect::<String>();
            assert!(lines[0].starts_with(&cut("kubarium watch   dev")), "{lines:#?}");
            assert!(rows < 2 || lines.last().unwrap().starts_with(&cut("space hold")), "{lines:#?}");
            let has_lanes = lines.get(7).is_some_and(|line| line.starts_with(&cut("kubelets")));
            assert!(rows < 9 || has_lanes, "{lines:#?}");
        }
    }

    #[test]
    fn who_is_held_has_room_before_the_last_steps_and_these_before_queues() {
        assert_eq!(heights(40, 5, 10), [1, 7, 10, 5, 16, 1]);
        assert_eq!(heights(24, 5, 10), [1, 7, 6, 5, 4, 1]);
        assert_eq!(heights(17, 5, 10), [1, 7, 0, 5, 3, 1]);
        assert_eq!(heights(10, 5, 10), [1, 7, 0, 1, 0, 1]);
        assert_eq!(heights(0, 5, 10), [0; 6]);
        let lines = lines(&drawn(&mut picture(), &Value::Null, (80, 24)));
        assert!(lines[17].starts_with("and 4 more queues") && lines[18].starts_with("steps"), "{lines:#?}");
    }

    #[test]
    fn a_screen_says_what_flows_what_waits_and_who_is_held() {
        let mut picture = picture();
        let held = json!({"paused": true, "heldCount": 9, "held": [{"number": 4, "words": "before it"}]});
        let first = lines(&drawn(&mut picture, &held, (80, 40))).join("\n");
        for part in [
            "kubarium watch   dev   step 13   held between two steps",
            "informers         12    +12                █ enqueued ns/a",
            "queue-3          0 ▒               0 ns/a",
            "queue-12         1 █               0",
            "and 4 more queues",
            "held     4  before it",
            "and 5 more are held",
            "queue-12-controller: enqueued ns/a",
            "q quit",
        ] {
            assert!(first.contains(part), "{part} is not in\n{first}");
        }
        let second = lines(&drawn(&mut picture, &json!({"refused": "no"}), (60, 40))).join("\n");
        assert!(second.contains("informers         12        enqueued"), "{second}");
        assert!(second.contains("step 13   no"), "{second}");
    }

    #[test]
    fn control_characters_of_a_name_do_nothing_to_the_screen() {
        let buffer = drawn(&mut picture(), &json!({"refused": "a\u{1b}[2Jb"}), (80, 24));
        assert!(lines(&buffer)[0].contains("step 13   a[2Jb"), "{buffer:?}");
    }
}
