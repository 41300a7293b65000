//! What leases are called that nobody has given a name: a number of 63 bits that looks like chance, as etcd's
//! (`LeaseGrant` draws one), so that nobody takes it for a count or types another's by accident.
//!
//! It follows from the lease's own number, one to one: the same in every run, kept nowhere, and never the
//! name of two.

const BITS: u64 = (1 << 63) - 1;
/// Odd, so that multiplying by them can be undone.
const FACTORS: [u64; 2] = [0x1e37_79b9_7f4a_7c15, 0x3f58_476d_1ce4_e5b9];
const INVERSES: [u64; 2] = [inverse(FACTORS[0]), inverse(FACTORS[1])];
/// More than half of the bits, so that it undoes itself.
const SHIFT: u32 = 32;

/// What undoes a multiplication by an odd number; each step doubles how many bits of it are right.
const fn inverse(factor: u64) -> u64 {
    let mut found = factor;
    let mut step = 0;
    while step < 6 {
        found = found.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(found)));
        step += 1;
    }
    found
}

/// What the lease of this number is called.
pub(super) fn name(number: u64) -> u64 {
    let mixed = number.wrapping_mul(FACTORS[0]) & BITS;
    (mixed ^ mixed >> SHIFT).wrapping_mul(FACTORS[1]) & BITS
}

/// The number of the lease that is called so; None: no lease is, unless somebody has named it.
pub(super) fn number(name: u64) -> Option<u64> {
    let mixed = name.wrapping_mul(INVERSES[1]) & BITS;
    (name <= BITS).then(|| (mixed ^ mixed >> SHIFT).wrapping_mul(INVERSES[0]) & BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_to_one_with_numbers_and_large() {
        for number in (0..1000).chain([BITS - 1, BITS]) {
            assert_eq!(super::number(name(number)), Some(number), "{number}");
        }
        assert_eq!((name(0), number(BITS + 1), number(u64::MAX)), (0, None, None));
        assert!((1..100).all(|number| name(number) > 1 << 52), "nobody takes it for a count");
    }
}
