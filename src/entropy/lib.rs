//! Randomness for one cluster: UIDs, name suffixes, jitter. Nothing else draws numbers (TLS keys apart).
//!
//! Seeded, a cluster on a stepped clock runs the same way twice; unseeded, it draws its seed from the system.

#![warn(missing_docs, unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use sync::Mutex;

/// Upstream's alphabet for generated names (`k8s.io/apimachinery/pkg/util/rand`): no vowels, so that no words
/// appear, and no characters that are easily mistaken for others.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A cluster's random numbers. Cloning shares the sequence.
#[derive(Clone, Debug)]
pub struct Entropy(Arc<Mutex<fastrand::Rng>>);

impl Entropy {
    /// Numbers that a seed decides: equal ones for equal seeds.
    pub fn seeded(seed: u64) -> Entropy {
        Entropy(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// Different numbers each time.
    pub fn from_system() -> Entropy {
        Entropy(Arc::new(Mutex::new(fastrand::Rng::new())))
    }

    /// Draws by itself from here on what this one will draw: forks of one moment behave alike.
    pub fn fork(&self) -> Entropy {
        Entropy(Arc::new(Mutex::new(self.with(|rng| rng.clone()))))
    }

    /// A version 4 UUID, as in `metadata.uid`.
    pub fn uid(&self) -> String {
        let (number, variant) = self.with(|rng| (rng.u128(..), rng.usize(..4)));
        // The template's digits count from the front of the number's; `v` is the version, `n` the variant.
        let mut shift = 128;
        let digit = |place: u8| {
            shift -= if place == b'-' { 0 } else { 4 };
            match place {
                b'x' => char::from(b"0123456789abcdef"[(number >> shift) as usize & 15]),
                b'v' => '4',
                b'n' => char::from(b"89ab"[variant]),
                other => char::from(other),
            }
        };
        b"xxxxxxxx-xxxx-vxxx-nxxx-xxxxxxxxxxxx".iter().copied().map(digit).collect()
    }

    /// So many hexadecimal digits, as in a container's id.
    pub fn hex(&self, digits: usize) -> String {
        self.with(|rng| (0..digits).map(|_| char::from(b"0123456789abcdef"[rng.usize(..16)])).collect())
    }

    /// What `generateName` and the ReplicaSet controller append: `length` characters (5 upstream).
    pub fn suffix(&self, length: usize) -> String {
        self.with(|rng| (0..length).map(|_| char::from(SAFE[rng.usize(..SAFE.len())])).collect())
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.with(|rng| rng.usize(..bound)) }
    }

    /// `duration` lengthened by up to `factor` of itself (upstream's `wait.Jitter`).
    pub fn jitter(&self, duration: Duration, factor: f64) -> Duration {
        duration.mul_f64(1.0 + self.with(|rng| rng.f64()) * factor)
    }

    fn with<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock())
    }
}

/// Upstream's `rand.SafeEncodeString`: maps each byte to the safe alphabet, as pod template hashes are
/// written.
pub fn safe_encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = Entropy::seeded(7).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]));
        assert_eq!(uid, Entropy::seeded(7).uid());
    }

    #[test]
    fn forks_draw_what_their_parent_will_draw() {
        let parent = Entropy::seeded(7);
        parent.uid();
        let (one, other) = (parent.fork(), parent.fork());
        let drawn = [one.uid(), one.uid()];
        assert_eq!(drawn, [other.uid(), other.uid()]);
        assert_eq!(drawn, [parent.uid(), parent.uid()]);
    }
}
