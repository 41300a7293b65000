//! Which of the stages that match is played: by their weights (kwok's `Lifecycle.Match`).

use std::sync::Arc;

use serde_json::Value;

use super::cel_functions::CelHost;
use super::error::StageError;
use super::stage::ObjectStage;

/// Stages that match, and how probable each is; those that cannot be are left out.
pub(crate) type Chances = Vec<(Arc<ObjectStage>, u64)>;

/// Those of `stages` that may be played.
///
/// # Errors
/// What went wrong in an expression, and of which stage.
pub(crate) fn chances(
    stages: &[Arc<ObjectStage>],
    tree: &Value,
    host: &CelHost,
) -> Result<Chances, StageError> {
    let failed = |stage: &ObjectStage, why: StageError| why.at(format!("stage {}: ", stage.name));
    let mut matching = Vec::new();
    for stage in stages {
        if stage.matches(tree, host).map_err(|why| failed(stage, why))? {
            matching.push(stage);
        }
    }
    if let [only] = matching[..] {
        return Ok(vec![(only.clone(), 1)]);
    }
    let mut weighed = Vec::new();
    for stage in matching {
        weighed.push((stage, stage.weight(tree, host).map_err(|why| failed(stage, why))?));
    }
    Ok(by_weight(weighed))
}

/// Where no weight is above 0 all are alike, but for those without one.
fn by_weight(weighed: Vec<(&Arc<ObjectStage>, Option<i64>)>) -> Chances {
    let is_possible = weighed.iter().any(|(_, weight)| weight.is_some_and(|weight| weight > 0));
    let is_none_known = weighed.iter().all(|(_, weight)| weight.is_none());
    let chance = |weight: Option<i64>| match weight {
        Some(weight) if is_possible => weight.max(0).unsigned_abs(),
        Some(_) => 1,
        None => u64::from(is_none_known),
    };
    let all = weighed.into_iter().map(|(stage, weight)| (stage.clone(), chance(weight)));
    all.filter(|(_, chance)| *chance > 0).collect()
}

/// One of them.
pub(crate) fn draw(chances: &[(Arc<ObjectStage>, u64)], host: &CelHost) -> Option<Arc<ObjectStage>> {
    if let [(only, _)] = chances {
        return Some(only.clone());
    }
    let total: u64 = chances.iter().map(|(_, chance)| chance).fold(0, |all, one| all.saturating_add(*one));
    let mut left = host.entropy.below(usize::try_from(total).unwrap_or(usize::MAX)) as u64;
    for (stage, chance) in chances {
        match left.checked_sub(*chance) {
            Some(rest) => left = rest,
            None => return Some(stage.clone()),
        }
    }
    None
}
