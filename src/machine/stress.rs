//! Programs that do nothing but use the machine: `vish/stress`, which agnhost has as `stress`, and the
//! `stress` of `polinux/stress`. What they are told to use is what their containers use.

use std::time::Duration;

use crate::agnhost::flags::flag;
use crate::agnhost::klog_line;
use crate::images;
use crate::interpreter::player::{AfterCommand, Player};
use crate::invocation::Invocation;
use crate::programs::names;

/// What each of its processes uses beside that.
const OWN_BYTES: f64 = 1_048_576.0;
/// What `stress --vm` takes unless it is told how much.
const USUAL_BYTES: f64 = 256.0 * 1_048_576.0;

/// What one uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StressLoad {
    /// How many processors.
    pub cores: f64,
    /// Memory, in the end.
    pub bytes: f64,
    /// It takes the memory piece by piece, for so long; the processors only then.
    pub grows_for: Duration,
}

/// What a container of such a program uses; nothing of any other.
pub fn load(invocation: &Invocation<'_>) -> Option<StressLoad> {
    let name = images::base_name(invocation.image);
    if !name.contains("stress") && name != "agnhost" && invocation.command.is_empty() {
        return None;
    }
    let words: Vec<String> = invocation.words().cloned().collect();
    let at = words.iter().position(|word| names::base_name(word) == "stress");
    if name == "agnhost" || images::repository(invocation.image) == "docker.io/vish/stress" {
        let is_whole = name == "agnhost";
        let at = if is_whole { at? + 1 } else { at.map_or(0, |at| at + 1) };
        return Some(GrowingLoad::of(&words[at..]).load());
    }
    // The image starts a shell: only who names the program runs it.
    at.map(|at| hogs(&words[at + 1..]))
}

/// What the flags of `vish/stress` say.
struct GrowingLoad {
    cores: f64,
    total: String,
    step: String,
    pause: Duration,
}

impl GrowingLoad {
    fn of(words: &[String]) -> GrowingLoad {
        // Go's flags have one dash or two.
        let words: Vec<String> = words
            .iter()
            .map(|word| match word.strip_prefix('-') {
                Some(rest) if !rest.starts_with('-') => format!("--{rest}"),
                _ => word.clone(),
            })
            .collect();
        let text = |name: &str, usual: &str| flag(&words, name).unwrap_or(usual).to_owned();
        GrowingLoad {
            cores: text("cpus", "0").parse().unwrap_or(0.0),
            total: text("mem-total", "0"),
            step: text("mem-alloc-size", "4Ki"),
            pause: golang::duration::parse(&text("mem-alloc-sleep", "1ms")).unwrap_or_default(),
        }
    }

    fn load(&self) -> StressLoad {
        let (total, step) = (amount(&self.total), amount(&self.step).max(1.0));
        // What is left of the last piece is never taken.
        let pieces = (total / step).floor();
        let grows_for = Duration::from_secs_f64((pieces * self.pause.as_secs_f64()).min(MAX_SECONDS));
        StressLoad { cores: self.cores, bytes: OWN_BYTES + pieces * step, grows_for }
    }
}

/// A year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// A quantity, as Kubernetes writes it.
fn amount(text: &str) -> f64 {
    apimachinery::quantity::Quantity::parse(text).map_or(0.0, |amount| amount.as_approximate_f64())
}

/// `stress --cpu N --vm N --vm-bytes B`; `M` is a mebibyte there.
fn hogs(words: &[String]) -> StressLoad {
    let value = |long: &str, short: &str| {
        let at = words.iter().position(|word| word == short);
        flag(words, long).or_else(|| words.get(at? + 1).map(String::as_str))
    };
    let count =
        |long: &str, short: &str| value(long, short).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let (workers, cores) = (count("vm", "-m"), count("cpu", "-c"));
    let each = value("vm-bytes", "").map_or(USUAL_BYTES, bytes);
    // Those that take memory and do not hold it still write it again and again.
    let writes = if value("vm-hang", "").is_some() || words.iter().any(|word| word == "--vm-keep") {
        0.0
    } else {
        workers
    };
    StressLoad {
        cores: cores + writes + count("io", "-i") * 0.1 + count("hdd", "-d") * 0.3,
        bytes: OWN_BYTES + workers * each,
        grows_for: Duration::ZERO,
    }
}

/// `150M`
fn bytes(text: &str) -> f64 {
    let (digits, unit) =
        text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit.to_ascii_uppercase().as_str() {
        "K" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        _ => 1.0,
    };
    digits.parse().unwrap_or(0.0) * unit
}

/// Says what `vish/stress` says, and stays.
pub(crate) fn run(player: &mut Player<'_>, words: &[String]) -> AfterCommand {
    let growing = GrowingLoad::of(words);
    let pause = golang::duration::format(growing.pause);
    let (total, step) = (&growing.total, &growing.step);
    let line =
        format!("Allocating {total:?} memory, in {step:?} chunks, with a {pause} sleep between allocations");
    klog_line::say_at(player, ('I', "main.go:26"), line);
    match player.pause(growing.load().grows_for) {
        AfterCommand::Go => {}
        flow => return flow,
    }
    if growing.cores > 0.0 {
        klog_line::say_at(player, ('I', "main.go:39"), "Spawning a thread to consume CPU");
    }
    klog_line::say_at(player, ('I', "main.go:29"), format!("Allocated {total:?} memory"));
    player.sleep(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    fn of(image: &str, line: &str) -> Option<(f64, f64, u64)> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let found = load(&Invocation::new(image, &[], &words))?;
        Some((found.cores, (found.bytes - OWN_BYTES) / MIB, found.grows_for.as_secs()))
    }

    #[test]
    fn they_use_what_they_are_told_to() {
        for (image, line, wanted) in [
            ("vish/stress", "-cpus 2", Some((2.0, 0.0, 0))),
            (
                "vish/stress",
                "-mem-total 950Mi -mem-alloc-size 100Mi -mem-alloc-sleep 1s",
                Some((0.0, 900.0, 9)),
            ),
            ("e2e/agnhost:2", "stress --mem-total=1Mi --cpus=1", Some((1.0, 1.0, 0))),
            ("e2e/agnhost:2", "pause", None),
            ("polinux/stress", "stress --vm 1 --vm-bytes 150M --vm-hang 1", Some((0.0, 150.0, 0))),
            ("polinux/stress", "stress -c 2 -m 1", Some((3.0, 256.0, 0))),
            ("polinux/stress", "", None),
            ("nginx", "", None),
        ] {
            assert_eq!(of(image, line), wanted, "{image} {line}");
        }
    }
}
