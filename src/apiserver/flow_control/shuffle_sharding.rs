//! Which queues a flow may wait in: a hand of them, dealt by its hash (`util/shufflesharding`).

use sha2::{Digest, Sha256};

/// What a hash gives at most without favouring any queue.
const MAX_HASH_BITS: u32 = 60;
/// With the bits of a hash there is no bigger hand.
const MAX_HAND: usize = 15;
const MAX_DECK: usize = 1 << 26;

/// Some cards out of a deck.
pub(super) struct Hand {
    cards: [usize; MAX_HAND],
    size: usize,
}

impl Hand {
    /// Deals `size` different ones of `deck` cards; the same hash is always dealt the same.
    pub(super) fn deal(hash: u64, deck: usize, size: usize) -> Hand {
        let (mut hash, mut cards, size) = (hash, [0; MAX_HAND], size.clamp(1, MAX_HAND.min(deck)));
        for (at, card) in cards.iter_mut().take(size).enumerate() {
            let left = (deck - at) as u64;
            *card = (hash % left) as usize;
            hash /= left;
        }
        let remainders = cards;
        for (at, card) in cards.iter_mut().take(size).enumerate() {
            for before in remainders[..at].iter().rev() {
                *card += usize::from(*card >= *before);
            }
        }
        Hand { cards, size }
    }

    /// The cards, from the one after `offset` on, and around.
    pub(super) fn from(&self, offset: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.size).map(move |at| self.cards[(offset + at) % self.size])
    }
}

/// Whether such hands can be dealt.
pub(super) fn is_possible(deck: usize, hand: usize) -> bool {
    let bits = (deck as f64).log2() * hand as f64;
    (1..=deck).contains(&hand) && deck <= MAX_DECK && bits.ceil() <= f64::from(MAX_HASH_BITS)
}

/// What a flow's hand is dealt by.
pub(super) fn hash_flow(flow_schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(flow_schema);
    hash.update([0]);
    hash.update(distinguisher);
    let sum: [u8; 32] = hash.finalize().into();
    u64::from_le_bytes(*sum.first_chunk().expect("a sum has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_are_dealt_by_the_hash() {
        // Dealt by upstream's dealer.
        let cases: [(u64, usize, usize, &[usize]); 6] = [
            (0, 8, 3, &[0, 1, 2]),
            (1, 8, 3, &[1, 0, 2]),
            (511, 8, 8, &[7, 0, 4, 2, 1, 3, 5, 6]),
            (123_456_789_012_345_678, 128, 6, &[78, 3, 40, 125, 86, 7]),
            (u64::MAX, 64, 6, &[63, 15, 55, 23, 31, 2]),
            (999_999_999, 16, 4, &[15, 9, 0, 12]),
        ];
        for (hash, deck, size, cards) in cases {
            let hand: Vec<usize> = Hand::deal(hash, deck, size).from(0).collect();
            assert_eq!(hand, cards, "{hash} of {deck}");
        }
        assert_eq!(Hand::deal(1, 8, 3).from(4).collect::<Vec<_>>(), [0, 2, 1]);
        assert_eq!(hash_flow("service-accounts", "system:serviceaccount:a:b"), 8_690_863_317_635_817_527);
    }

    #[test]
    fn a_hand_needs_bits_of_the_hash() {
        for (deck, hand, expected) in
            [(128, 6, true), (64, 10, true), (64, 11, false), (2, 3, false), (1, 1, true), (8, 0, false)]
        {
            assert_eq!(is_possible(deck, hand), expected, "{hand} of {deck}");
        }
    }
}
