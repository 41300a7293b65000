//! The number that the Job of Kubernetes' documentation works on: `print bpi(2000)`.

/// More digits are not worked out.
pub(crate) const MOST_DIGITS: usize = 10_000;
/// A limb has nine digits.
const BASE: u64 = 1_000_000_000;
/// Limbs behind the last digit, which take up what is lost in rounding.
const SPARE_LIMBS: usize = 2;

/// So many digits, the last one rounded, as `3.14`; by Machin's formula.
pub(crate) fn digits(count: usize) -> String {
    let count = count.clamp(1, MOST_DIGITS);
    let limbs = 1 + count.div_ceil(9) + SPARE_LIMBS;
    let (fifth, other) = (arctan_of_inverse(5, limbs), arctan_of_inverse(239, limbs));
    let mut sum: Vec<i128> =
        fifth.iter().zip(&other).map(|(a, b)| 16 * i128::from(*a) - 4 * i128::from(*b)).collect();
    // Half of the last digit that is kept, so that cutting rounds.
    let (limb, place) = (1 + (count - 1) / 9, (count - 1) % 9);
    sum[limb] += 5 * 10i128.pow(8 - place as u32);
    carry(&mut sum);
    let mut text: String = sum[1..].iter().map(|limb| format!("{limb:09}")).collect();
    text.truncate(count - 1);
    if text.is_empty() { sum[0].to_string() } else { format!("{}.{text}", sum[0]) }
}

fn carry(limbs: &mut [i128]) {
    for at in (1..limbs.len()).rev() {
        limbs[at - 1] += limbs[at].div_euclid(BASE.into());
        limbs[at] = limbs[at].rem_euclid(BASE.into());
    }
}

/// `1/x - 1/3x³ + 1/5x⁵ - ...`
fn arctan_of_inverse(x: u64, limbs: usize) -> Vec<i64> {
    let mut power = vec![0; limbs];
    power[0] = 1;
    divide(&mut power, x);
    let mut sum: Vec<i128> = power.iter().map(|limb| i128::from(*limb)).collect();
    for odd in (3u64..).step_by(2) {
        divide(&mut power, x * x);
        if power.iter().all(|limb| *limb == 0) {
            break;
        }
        let mut term = power.clone();
        divide(&mut term, odd);
        let sign = if odd % 4 == 1 { 1 } else { -1 };
        sum.iter_mut().zip(&term).for_each(|(sum, limb)| *sum += sign * i128::from(*limb));
    }
    carry(&mut sum);
    // Each limb is below the base, so that it fits.
    sum.into_iter().map(|limb| i64::try_from(limb).unwrap_or(0)).collect()
}

fn divide(limbs: &mut [u64], by: u64) {
    let mut rest = 0;
    for limb in limbs {
        let value = rest * BASE + *limb;
        (*limb, rest) = (value / by, value % by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_right() {
        assert_eq!(digits(1), "3");
        assert_eq!(digits(5), "3.1416");
        let hundred = concat!(
            "3.14159265358979323846264338327950288419716939937510",
            "5820974944592307816406286208998628034825342117068"
        );
        assert_eq!(digits(100), hundred);
        let long = digits(2000);
        assert_eq!(long.len(), 2001);
        assert!(
            long.starts_with("3.14159265358979") && long[..1001].ends_with("420198"),
            "{}",
            &long[990..1001]
        );
    }
}
