//! How NodeResourcesFit scores a node by what is taken of it (`least_allocated.go`, `most_allocated.go`,
//! `requested_to_capacity_ratio.go`).

use super::args::{ScoringStrategy, StrategyType, UtilizationShapePoint};
use crate::framework::plugin::MAX_NODE_SCORE;

/// What a shape's scores go up to.
const MAX_CUSTOM_PRIORITY_SCORE: i64 = 10;
/// All of it is taken.
const MAX_UTILIZATION: i64 = 100;

/// The score of a node: of each resource how much there would be taken, how much there is, and its weight.
/// What the node has nothing of does not count.
pub(super) fn score(strategy: &ScoringStrategy, amounts: &[(i64, i64, i64)]) -> i64 {
    let amounts = amounts.iter().copied().filter(|(_, all, _)| *all != 0);
    match strategy.strategy {
        StrategyType::LeastAllocated => mean(amounts.map(|(taken, all, weight)| (least(taken, all), weight))),
        StrategyType::MostAllocated => mean(amounts.map(|(taken, all, weight)| (most(taken, all), weight))),
        StrategyType::RequestedToCapacityRatio => by_shape(strategy, amounts),
    }
}

fn mean(scores: impl Iterator<Item = (i64, i64)>) -> i64 {
    let sum = |(total, weights), (score, weight)| (total + score * weight, weights + weight);
    let (total, weights) = scores.fold((0, 0), sum);
    if weights == 0 { 0 } else { total / weights }
}

fn least(taken: i64, all: i64) -> i64 {
    if taken > all { 0 } else { share(all - taken, all) }
}

/// What is taken may be more than there is, since pods that ask for nothing count for a little.
fn most(taken: i64, all: i64) -> i64 {
    share(taken.min(all), all)
}

fn share(part: i64, all: i64) -> i64 {
    (i128::from(part) * i128::from(MAX_NODE_SCORE) / i128::from(all)) as i64
}

/// Resources that score nothing do not count.
fn by_shape(strategy: &ScoringStrategy, amounts: impl Iterator<Item = (i64, i64, i64)>) -> i64 {
    let shape = strategy.requested_to_capacity_ratio.as_ref().map_or(&[][..], |ratio| &ratio.shape);
    let mut total = 0;
    let mut weights = 0;
    for (taken, all, weight) in amounts {
        let utilization = if taken > all { MAX_UTILIZATION } else { share(taken, all) };
        let score = broken_linear(shape, utilization);
        if score > 0 {
            total += score * weight;
            weights += weight;
        }
    }
    if weights == 0 { 0 } else { (total as f64 / weights as f64).round() as i64 }
}

/// `BuildBrokenLinearFunction`
fn broken_linear(shape: &[UtilizationShapePoint], utilization: i64) -> i64 {
    let scaled = |point: &UtilizationShapePoint| point.score * (MAX_NODE_SCORE / MAX_CUSTOM_PRIORITY_SCORE);
    let Some(after) = shape.iter().position(|point| utilization <= point.utilization) else {
        return shape.last().map_or(0, scaled);
    };
    if after == 0 {
        return scaled(&shape[0]);
    }
    let (left, right) = (&shape[after - 1], &shape[after]);
    let rise = (scaled(right) - scaled(left)) * (utilization - left.utilization);
    scaled(left) + rise / (right.utilization - left.utilization)
}
