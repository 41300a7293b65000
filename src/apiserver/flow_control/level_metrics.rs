//! What is told of each priority level: its limits, its demand, how much of it is used.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use super::level::{PriorityLevel, Standing};
use super::metrics::{PREFIX, section};

type Gauge = fn(&Standing) -> f64;

const GAUGES: &[(&str, Gauge)] = &[
    ("current_r", |level| level.current_r),
    ("nominal_limit_seats", |level| level.limits.nominal as f64),
    ("lower_limit_seats", |level| level.limits.lower as f64),
    ("upper_limit_seats", |level| level.limits.upper as f64),
    ("demand_seats_high_watermark", |level| level.stats.high_watermark as f64),
    ("demand_seats_average", |level| level.stats.average),
    ("demand_seats_stdev", |level| level.stats.deviation),
    ("demand_seats_smoothed", |level| level.stats.smoothed),
    ("target_seats", |level| level.target),
    ("current_limit_seats", |level| level.current as f64),
];

/// The name, and which of the values of a dispatch with which label.
const DISPATCH: &[(&str, &[(usize, &str)])] = &[
    ("dispatch_r", &[(0, "")]),
    ("latest_s", &[(1, "")]),
    ("next_s_bounds", &[(3, "bound=\"max\","), (2, "bound=\"min\",")]),
    ("next_discounted_s_bounds", &[(5, "bound=\"max\","), (4, "bound=\"min\",")]),
];

/// The name, and which of the histograms.
const UTILIZATION: &[(&str, &[usize])] = &[
    ("priority_level_request_utilization", &[1, 0]),
    ("priority_level_seat_utilization", &[2]),
    ("demand_seats", &[3]),
];

/// In Prometheus' text format.
pub(super) fn render(levels: &[Arc<PriorityLevel>], now: Duration, out: &mut String) {
    let standings: Vec<Standing> = levels.iter().map(|level| level.standing()).collect();
    for (name, value) in GAUGES {
        let name = format!("{PREFIX}{name}");
        let line = |(level, standing): (&Arc<PriorityLevel>, &Standing)| {
            format!("{name}{{priority_level={:?}}} {}\n", level.name, value(standing))
        };
        section(out, &name, &levels.iter().zip(&standings).map(line).collect::<String>());
    }
    for (name, values) in DISPATCH {
        let name = format!("{PREFIX}{name}");
        let mut text = String::new();
        for (level, (at, bound)) in levels.iter().flat_map(|level| values.iter().map(move |one| (level, one)))
        {
            if let Some(value) = level.with(|set| set.utilization.dispatch_value(*at)) {
                let _ = writeln!(text, "{name}{{{bound}priority_level={:?}}} {value}", level.name);
            }
        }
        section(out, &name, &text);
    }
    for (name, histograms) in UTILIZATION {
        let mut text = String::new();
        for (level, at) in levels.iter().flat_map(|level| histograms.iter().map(move |at| (level, *at))) {
            level.with(|set| set.utilization.render(at, now, &mut text, &level.name));
        }
        section(out, &format!("{PREFIX}{name}"), &text);
    }
}
