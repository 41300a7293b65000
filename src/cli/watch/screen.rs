//! The screen: a picture as lines of text, as many and as wide as there is room for.

use serde_json::Value;

use super::picture::{LiveLane, LivePicture, LiveQueue};

/// Queues that are shown at most; of further ones how many there are.
const MAX_QUEUES: usize = 8;
/// Keys that a worker holds which are named for each queue.
const MAX_KEYS: usize = 3;
/// Who is held, of so many.
const MAX_HELD: usize = 4;

/// All of it. What is new is counted from frame to frame.
pub(super) fn frame(
    picture: &mut LivePicture,
    held: &Value,
    name: &str,
    (columns, rows): (usize, usize),
) -> String {
    let mut lines = vec![heading(picture, held, name), String::new()];
    lines.extend(LiveLane::ALL.map(|lane| lane_line(picture, lane)));
    lines.push(String::new());
    lines.extend(queue_lines(picture));
    lines.extend(held_lines(held));
    lines.push(String::new());
    let footer = "space hold or go on   n one step   s a stage   q quit";
    let room = rows.saturating_sub(lines.len() + 1);
    let skip = picture.lines.len().saturating_sub(room);
    lines.extend(picture.lines.iter().skip(skip).cloned());
    lines.truncate(rows.saturating_sub(1));
    lines.resize(rows.saturating_sub(1), String::new());
    lines.push(footer.to_owned());
    picture.drawn();
    let cut: Vec<String> = lines.iter().map(|line| line.chars().take(columns).collect()).collect();
    cut.join("\n")
}

fn heading(picture: &LivePicture, held: &Value, name: &str) -> String {
    let state = match (held["refused"].as_str(), held["paused"] == true) {
        (Some(why), _) => why.to_owned(),
        (None, true) => "held between two steps".into(),
        (None, false) => "running".into(),
    };
    let missed = if picture.missed == 0 { String::new() } else { format!(", {} forgotten", picture.missed) };
    format!("kubarium watch   {name}   step {}{missed}   {state}", picture.newest.0)
}

fn lane_line(picture: &LivePicture, lane: LiveLane) -> String {
    let flow = picture.lane(lane);
    let new = if flow.new == 0 { String::new() } else { format!("+{}", flow.new) };
    format!("{:<12}{:>8} {new:>6}  {}", lane.name(), flow.steps, flow.last)
}

/// The deepest first, then who moved last.
fn queue_lines(picture: &LivePicture) -> Vec<String> {
    let mut queues: Vec<(&String, &LiveQueue)> = picture.queues.iter().collect();
    queues.sort_by_key(|(_, queue)| {
        std::cmp::Reverse((queue.waiting.len() + queue.working.len(), queue.moved))
    });
    let mut lines = vec![format!("{:<34}{:>6} {:>6}  at work on", "queue", "wait", "done")];
    lines.extend(queues.iter().take(MAX_QUEUES).map(|(name, queue)| {
        let keys: Vec<&str> = queue.working.values().take(MAX_KEYS).map(String::as_str).collect();
        let more = queue.working.len().saturating_sub(MAX_KEYS);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let (waiting, done) = (queue.waiting.len(), queue.done);
        format!("{name:<34}{waiting:>6} {done:>6}  {}{more}", keys.join(", "))
    }));
    let hidden = queues.len().saturating_sub(MAX_QUEUES);
    if hidden > 0 {
        lines.push(format!("and {hidden} more queues"));
    }
    lines
}

fn held_lines(held: &Value) -> Vec<String> {
    let all = held["held"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = held["heldCount"].as_u64().unwrap_or_default();
    let mut lines: Vec<String> = all
        .iter()
        .take(MAX_HELD)
        .map(|step| {
            let number = step["number"].as_u64().unwrap_or_default();
            format!("held {number:>5}  {}", step["words"].as_str().unwrap_or_default())
        })
        .collect();
    let hidden = count.saturating_sub(MAX_HELD as u64);
    if hidden > 0 {
        lines.push(format!("and {hidden} more are held"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use flow::{Step, StepId, TraceStep};
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

    #[test]
    fn a_frame_fits_the_screen_whatever_its_size() {
        let held = json!({"paused": true, "heldCount": 9, "held": [{"number": 4, "words": "before"}]});
        for (columns, rows) in [(80, 40), (20, 10), (1, 1), (200, 3)] {
            let frame = frame(&mut picture(), &held, "dev", (columns, rows));
            assert_eq!(frame.split('\n').count(), rows);
            assert!(frame.split('\n').all(|line| line.chars().count() <= columns), "{frame}");
        }
    }

    #[test]
    fn a_frame_says_what_flows_what_waits_and_who_is_held() {
        let mut picture = picture();
        let held = json!({"paused": true, "heldCount": 9, "held": [{"number": 4, "words": "before it"}]});
        let first = frame(&mut picture, &held, "dev", (80, 40));
        for part in [
            "kubarium watch   dev   step 13   held between two steps",
            "informers         12    +12  enqueued ns/a",
            "queue-3                                0      0  ns/a",
            "and 4 more queues",
            "held     4  before it",
            "and 5 more are held",
            "queue-12-controller: enqueued ns/a",
            "q quit",
        ] {
            assert!(first.contains(part), "{part} is not in\n{first}");
        }
        let second = frame(&mut picture, &json!({"refused": "no"}), "dev", (80, 40));
        assert!(second.contains("informers         12         enqueued") && second.contains("step 13   no"));
    }
}
