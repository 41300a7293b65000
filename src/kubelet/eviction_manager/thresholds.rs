//! Thresholds as kubelets are told them (`pkg/kubelet/eviction/helpers.go`, `ParseThresholdConfig`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::signal::Signal;
use crate::node_refusal::NodeRefusal;
use apimachinery::duration;
use apimachinery::quantity::{Format, Quantity};

/// Where containers write is what of the other two holds it: what is said of it counts for nothing
/// (`UpdateContainerFsThresholds`).
const DERIVED: [&str; 2] = ["containerfs.available", "containerfs.inodesFree"];

/// `--eviction-hard`, `--eviction-soft`: as `memory.available<100Mi,nodefs.available<10%`.
#[derive(Clone, Default, PartialEq)]
pub struct EvictionThresholds(pub(super) Vec<EvictionThreshold>);

/// `--eviction-soft-grace-period`: as `memory.available=1m30s`.
#[derive(Clone, Default, PartialEq)]
pub struct SignalPeriods(pub(super) Vec<(Signal, Duration)>);

/// `--eviction-minimum-reclaim`: as `memory.available=500Mi,nodefs.available=5%`.
#[derive(Clone, Default, PartialEq)]
pub struct SignalReclaims(pub(super) Vec<(Signal, ThresholdValue)>);

/// The least that is to be left of something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EvictionThreshold {
    pub(super) signal: Signal,
    pub(super) value: ThresholdValue,
}

/// An amount, or a share of what there is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ThresholdValue {
    Quantity(Quantity),
    Share(f64),
}

impl ThresholdValue {
    fn read(text: &str, signal: &str) -> Result<ThresholdValue, String> {
        let Some(share) = text.strip_suffix('%') else {
            let quantity = Quantity::parse(text).ok().filter(|quantity| quantity.sign() >= 0);
            let wrong = || {
                format!(
                    "eviction threshold {signal:?}: {text:?} must be a quantity, as 100Mi, or a share, as 10%"
                )
            };
            return quantity.map(ThresholdValue::Quantity).ok_or_else(wrong);
        };
        let share = share.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
        let wrong =
            || format!("eviction threshold {signal:?}: the percentage {text:?} must be from 0% to 100%");
        share.map(|share| ThresholdValue::Share(share / 100.0)).ok_or_else(wrong)
    }

    /// `GetThresholdQuantity`
    pub(super) fn of(&self, capacity: i64) -> Quantity {
        match self {
            ThresholdValue::Quantity(quantity) => quantity.clone(),
            ThresholdValue::Share(share) => Quantity::new((capacity as f64 * share) as i64, Format::BinarySi),
        }
    }

    /// Of a share of nothing, or of all, nothing is ever said (`parseThresholdStatement`).
    fn is_in_force(&self) -> bool {
        !matches!(self, ThresholdValue::Share(share) if *share <= 0.0 || *share >= 1.0)
    }
}

/// Of `SIGNAL<VALUE` or `SIGNAL=VALUE`, each signal once.
fn pairs<T>(
    text: &str,
    operator: char,
    read: impl Fn(&str, &str) -> Result<T, String>,
) -> Result<Vec<(Signal, T)>, String> {
    let mut all: Vec<(Signal, T)> = Vec::new();
    for statement in text.split(',').map(str::trim).filter(|statement| !statement.is_empty()) {
        let Some((name, value)) = statement.split_once(operator) else {
            return Err(format!(
                "invalid eviction threshold syntax {statement:?}, expected <signal>{operator}<value>"
            ));
        };
        if DERIVED.contains(&name) {
            read(value, name)?;
            continue;
        }
        let Some(signal) = Signal::ALL.into_iter().find(|signal| signal.name() == name) else {
            let known = Signal::ALL.map(Signal::name).join(", ");
            return Err(format!("unsupported eviction signal {name:?}: it may be one of {known}"));
        };
        if all.iter().any(|(known, _)| *known == signal) {
            return Err(format!("found duplicate eviction threshold for signal {name}"));
        }
        all.push((signal, read(value, name)?));
    }
    Ok(all)
}

impl FromStr for EvictionThresholds {
    type Err = String;

    fn from_str(text: &str) -> Result<EvictionThresholds, String> {
        let all = pairs(text, '<', ThresholdValue::read)?;
        let threshold = |(signal, value)| EvictionThreshold { signal, value };
        let in_force = all.into_iter().map(threshold).filter(|threshold| threshold.value.is_in_force());
        Ok(EvictionThresholds(in_force.collect()))
    }
}

impl FromStr for SignalPeriods {
    type Err = String;

    fn from_str(text: &str) -> Result<SignalPeriods, String> {
        let period = |value: &str, signal: &str| {
            let wrong = || format!("eviction grace period of {signal}: {value:?} is no time, as 90s");
            duration::parse(value).ok_or_else(wrong)
        };
        pairs(text, '=', period).map(SignalPeriods)
    }
}

impl FromStr for SignalReclaims {
    type Err = String;

    fn from_str(text: &str) -> Result<SignalReclaims, String> {
        pairs(text, '=', ThresholdValue::read).map(SignalReclaims)
    }
}

impl fmt::Display for ThresholdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThresholdValue::Quantity(quantity) => quantity.fmt(f),
            // A hundred times a share may be a little beside the percentage that was given.
            ThresholdValue::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
        }
    }
}

/// As they were told, in a text: so flags are shown.
fn shown(by_signal: &BTreeMap<&str, String>, operator: char) -> String {
    let pairs: Vec<String> =
        by_signal.iter().map(|(signal, value)| format!("{signal}{operator}{value}")).collect();
    pairs.join(",")
}

impl fmt::Debug for EvictionThresholds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", shown(&self.by_signal(), '<'))
    }
}

impl fmt::Debug for SignalPeriods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", shown(&self.by_signal(), '='))
    }
}

impl fmt::Debug for SignalReclaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", shown(&self.by_signal(), '='))
    }
}

impl SignalReclaims {
    /// Each as it was told.
    pub(crate) fn by_signal(&self) -> BTreeMap<&'static str, String> {
        self.0.iter().map(|(signal, value)| (signal.name(), value.to_string())).collect()
    }
}

impl SignalPeriods {
    /// Each as it was told.
    pub(crate) fn by_signal(&self) -> BTreeMap<&'static str, String> {
        self.0.iter().map(|(signal, period)| (signal.name(), duration::format(*period))).collect()
    }

    pub(super) fn of(&self, signal: Signal) -> Option<Duration> {
        self.0.iter().find(|(known, _)| *known == signal).map(|(_, period)| *period)
    }
}

impl EvictionThresholds {
    /// Each as it was told.
    pub(crate) fn by_signal(&self) -> BTreeMap<&'static str, String> {
        self.0.iter().map(|threshold| (threshold.signal.name(), threshold.value.to_string())).collect()
    }

    /// How much of a resource is kept from pods, so that they do not eat it up (`hardEvictionReservation`).
    pub(crate) fn kept(&self, resource: &str, capacity: i64) -> Option<Quantity> {
        let signal = match resource {
            "memory" => Signal::Memory,
            "ephemeral-storage" => Signal::NodeFs,
            _ => return None,
        };
        let threshold = self.0.iter().find(|threshold| threshold.signal == signal)?;
        Some(threshold.value.of(capacity))
    }

    /// Whether each has a period, as those that are soft must.
    ///
    /// # Errors
    /// The first that has none.
    pub(crate) fn check(&self, periods: &SignalPeriods) -> Result<(), NodeRefusal> {
        match self.0.iter().find(|threshold| periods.of(threshold.signal).is_none()) {
            Some(lacking) => {
                let name = lacking.signal.name();
                Err(format!(
                    "grace period must be specified for the soft eviction threshold {name}: --eviction-soft-grace-period={name}=90s"
                ).into())
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for EvictionThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.signal.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_as_upstream_reads_them() {
        let read = |text: &str| text.parse::<EvictionThresholds>();
        let all =
            read("memory.available<100Mi,nodefs.available<10%,imagefs.inodesFree<5%,imagefs.available<0%")
                .unwrap();
        let shown: Vec<String> = all.0.iter().map(|it| format!("{it} {}", it.value.of(1000))).collect();
        assert_eq!(shown, ["memory.available 100Mi", "nodefs.available 100", "imagefs.inodesFree 50"]);
        let told = "\"imagefs.inodesFree<5%,memory.available<100Mi,nodefs.available<10%\"";
        assert_eq!(format!("{all:#?}"), told, "as flags are shown");
        assert_eq!(read("").unwrap(), EvictionThresholds::default());
        assert_eq!(read("containerfs.available<9%").unwrap(), EvictionThresholds::default());
        assert!(read("containerfs.available<much").is_err());
        for (text, why) in [
            (
                "memory.available",
                "invalid eviction threshold syntax \"memory.available\", expected <signal><<value>",
            ),
            ("nodefs.inodesUsed<5%", "unsupported eviction signal \"nodefs.inodesUsed\": it may be one of"),
            (
                "pid.available<1,pid.available<2",
                "found duplicate eviction threshold for signal pid.available",
            ),
            ("memory.available<-1", "must be a quantity, as 100Mi, or a share, as 10%"),
            ("memory.available<101%", "the percentage \"101%\" must be from 0% to 100%"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn soft_thresholds_have_periods() {
        let soft: EvictionThresholds = "memory.available<1Gi".parse().unwrap();
        let periods = |text: &str| text.parse::<SignalPeriods>().unwrap();
        assert!(soft.check(&periods("memory.available=90s")).is_ok());
        assert!(
            soft.check(&periods("pid.available=90s")).unwrap_err().0.contains("threshold memory.available")
        );
        assert!("memory.available=soon".parse::<SignalPeriods>().unwrap_err().contains("no time, as 90s"));
    }
}
