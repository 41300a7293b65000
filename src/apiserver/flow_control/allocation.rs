//! Divides a sum among classes, fairly within the bounds of each (`util/flowcontrol/conc_alloc.go`).

/// A target below is taken to be this.
const MIN_TARGET: f64 = 0.001;
const EPSILON: f64 = 0.0000001;

/// One of those who share. `0 <= lower <= target`, `lower <= upper`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub target: f64,
    pub lower: f64,
    pub upper: f64,
}

/// What each gets, and the proportion of its target that each gets whose bounds do not matter. The shares add
/// up to `sum` and lie within the bounds; who gets less than the proportion has reached its upper bound, who
/// gets more its lower one. None when the bounds do not allow it, or are no bounds.
pub(super) fn allocate(sum: usize, classes: &[Class]) -> Option<(Vec<f64>, f64)> {
    let sum = sum as f64;
    let is_sound =
        |class: &Class| class.lower >= 0.0 && class.target >= class.lower && class.upper >= class.lower;
    let total = |of: fn(&Class) -> f64| classes.iter().map(of).sum::<f64>();
    let (low, high) = (total(|class| class.lower), total(|class| class.upper));
    if !classes.iter().all(is_sound) || low - sum > EPSILON || sum - high > EPSILON {
        return None;
    }
    if sum == 0.0 {
        return Some((vec![0.0; classes.len()], 0.0));
    }
    let lower_proportions = || classes.iter().map(|class| class.lower / class.aim());
    let upper_proportions = || classes.iter().map(|class| class.upper / class.aim());
    if low - sum > -EPSILON {
        let least = lower_proportions().fold(f64::from(f32::MAX), f64::min);
        return Some((classes.iter().map(|class| class.lower).collect(), least));
    }
    if sum - high > -EPSILON {
        let most = upper_proportions().fold(0.0, f64::max);
        return Some((classes.iter().map(|class| class.upper).collect(), most));
    }
    let proportion = proportion(sum, low, classes)?;
    let share = |class: &Class| (proportion * class.aim()).min(class.upper).max(class.lower);
    Some((classes.iter().map(share).collect(), proportion))
}

/// Grows it from bound to bound: between two of them the same classes get more, in proportion to their
/// targets.
fn proportion(sum: f64, low: f64, classes: &[Class]) -> Option<f64> {
    let bounds_of = |class: &Class| {
        let target = class.aim();
        [(class.lower / target, target), (class.upper / target, -target)]
    };
    let mut bounds: Vec<(f64, f64)> = classes.iter().flat_map(bounds_of).collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut so_far, mut proportion, mut growing_target, mut growing) = (low, bounds.first()?.0, 0.0, 0_i32);
    for (bound, target) in bounds {
        if bound > proportion {
            if growing > 0 {
                let reached = proportion + (sum - so_far) / growing_target;
                if reached <= bound {
                    return Some(reached);
                }
                so_far += (bound - proportion) * growing_target;
            }
            proportion = bound;
        }
        growing_target += target;
        growing += if target > 0.0 { 1 } else { -1 };
    }
    (so_far >= sum - EPSILON).then_some(proportion)
}

impl Class {
    fn aim(&self) -> f64 {
        self.target.max(MIN_TARGET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum; lower bound, target and upper bound of each; the share of each; the proportion.
    type Case = (usize, Vec<[f64; 3]>, Vec<f64>, f64);

    #[test]
    fn shares_are_fair_within_bounds() {
        // Computed by upstream.
        let cases: Vec<Case> = serde_json::from_str(include_str!("testdata/allocations.json")).unwrap();
        for (sum, classes, shares, fair) in cases {
            let class = |[lower, target, upper]: [f64; 3]| Class { target, lower, upper };
            let classes: Vec<Class> = classes.into_iter().map(class).collect();
            let (found, proportion) = allocate(sum, &classes).unwrap();
            let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
            assert!(found.iter().zip(&shares).all(is_near), "{sum} among {classes:?}: {found:?}");
            assert!(is_near((&proportion, &fair)), "{sum} among {classes:?}: {proportion}");
        }
    }

    #[test]
    fn what_cannot_be_shared_is_not() {
        let class = |lower, target, upper| Class { target, lower, upper };
        for classes in [
            vec![],
            vec![class(5.0, 6.0, 8.0)],
            vec![class(0.0, 1.0, 2.0)],
            vec![class(3.0, 2.0, 9.0)],
            vec![class(-1.0, 2.0, 9.0)],
            vec![class(3.0, 5.0, 2.0)],
        ] {
            assert!(allocate(4, &classes).is_none(), "{classes:?}");
        }
        assert_eq!(allocate(0, &[]), Some((vec![], 0.0)));
    }
}
