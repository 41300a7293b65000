//! The lanes: what flows in each, now and in the seconds before.

use ratatui_core::layout::{Layout, Rect};
use ratatui_core::style::{Color, Style, Stylize};
use ratatui_core::terminal::Frame;
use ratatui_core::text::Text;
use ratatui_widgets::sparkline::Sparkline;
use ratatui_widgets::table::{Row, Table};

use super::columns::{REST, fitted, right};
use super::picture::{FLOW_SECONDS, LaneFlow, LiveLane, LivePicture};

/// Rows of the table, with its heading.
pub(super) const ROWS: usize = 1 + LiveLane::ALL.len();
/// A narrower screen has no room for what flowed before.
const MIN_COLUMNS_WITH_FLOW: u16 = 70;

/// The colour of a lane, wherever it is named.
pub(super) fn colour(lane: LiveLane) -> Color {
    match lane {
        LiveLane::Apiserver => Color::Cyan,
        LiveLane::Etcd => Color::Magenta,
        LiveLane::Informers => Color::Blue,
        LiveLane::Controllers => Color::Green,
        LiveLane::Scheduler => Color::Yellow,
        LiveLane::Kubelets => Color::LightMagenta,
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, picture: &LivePicture) {
    let has_flow = area.width >= MIN_COLUMNS_WITH_FLOW;
    let flow = if has_flow { FLOW_SECONDS as u16 + 1 } else { 0 };
    let widths = fitted(area.width, [12, 9, 7, flow, REST]);
    let seconds = if has_flow { format!("{FLOW_SECONDS} seconds") } else { String::new() };
    let heading = ["lane".into(), right("steps"), right("new"), seconds.into(), "last".into()];
    let rows = LiveLane::ALL.map(|lane| lane_row(lane, picture.lane(lane)));
    let table = Table::new(rows, widths).column_spacing(0).header(Row::new(heading).reversed());
    frame.render_widget(table, area);
    // A table holds text: the bars are drawn where it left room for them.
    let [.., bars, _] = Layout::horizontal(widths).areas::<5>(area);
    for (lane, row) in LiveLane::ALL.into_iter().zip(bars.rows().skip(1)) {
        let bars = Sparkline::default().data(picture.lane(lane).seconds).style(colour(lane));
        frame.render_widget(bars, row);
    }
}

fn lane_row(lane: LiveLane, flow: &LaneFlow) -> Row<'_> {
    let new = if flow.new == 0 { String::new() } else { format!("+{}", flow.new) };
    Row::new([
        Text::styled(lane.name(), Style::new().fg(colour(lane)).bold()),
        right(flow.steps),
        right(new).bold(),
        Text::default(),
        Text::from(flow.last.as_str()),
    ])
}
