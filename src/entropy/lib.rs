//! Randomness for one cluster: UIDs, name suffixes, jitter. Nothing else draws numbers (TLS keys apart).
//!
//! Seeded, a cluster on a stepped clock runs the same way twice; unseeded, it draws its seed from the system.

#![warn(missing_docs, unreachable_pub)]

use std::sync::Arc;
use std::time::Duration;

use golang::fnv;
use sync::Mutex;

/// Upstream's alphabet for generated names (`k8s.io/apimachinery/pkg/util/rand`): no vowels, so that no words
/// appear, and no characters that are easily mistaken for others.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Of so many sorts of names it is counted how often one of them came. Names of one sort share their count:
/// their numbers then depend on which of them came first, and are still no others'.
const COUNTS: usize = 1 << 14;

/// A cluster's random numbers. Cloning shares the sequence.
#[derive(Clone, Debug)]
pub struct Entropy(Arc<Mutex<Sequence>>);

#[derive(Clone, Debug)]
struct Sequence {
    rng: fastrand::Rng,
    /// Of a seeded one.
    named: Option<NamedDraws>,
}

/// Numbers that belong to names.
#[derive(Clone, Debug)]
struct NamedDraws {
    seed: u64,
    counts: Vec<u32>,
}

impl Entropy {
    /// Numbers that a seed decides: equal ones for equal seeds.
    pub fn seeded(seed: u64) -> Entropy {
        let named = Some(NamedDraws { seed, counts: vec![0; COUNTS] });
        Entropy::of(Sequence { rng: fastrand::Rng::with_seed(seed), named })
    }

    /// Different numbers each time.
    pub fn from_system() -> Entropy {
        Entropy::of(Sequence { rng: fastrand::Rng::new(), named: None })
    }

    fn of(sequence: Sequence) -> Entropy {
        Entropy(Arc::new(Mutex::new(sequence)))
    }

    /// Draws by itself from here on what this one will draw: forks of one moment behave alike.
    pub fn fork(&self) -> Entropy {
        Entropy::of(self.0.lock().clone())
    }

    /// A version 4 UUID, as in `metadata.uid`.
    pub fn uid(&self) -> String {
        self.with(draw_uid)
    }

    /// As [`Entropy::uid`], for what has this name, the parts of it in their order: where a seed decides, the
    /// same for its first, second and next bearer whatever else is drawn meanwhile, by whichever thread. None
    /// without a seed.
    pub fn uid_of(&self, name: &[&str]) -> Option<String> {
        let mut sequence = self.0.lock();
        let NamedDraws { seed, counts } = sequence.named.as_mut()?;
        let hash = hash(name);
        let count = &mut counts[(hash % COUNTS as u64) as usize];
        *count = count.wrapping_add(1);
        let first = fastrand::Rng::with_seed(*seed ^ hash).u64(..);
        Some(draw_uid(&mut fastrand::Rng::with_seed(first.wrapping_add(u64::from(*count)))))
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
        draw(&mut self.0.lock().rng)
    }
}

fn draw_uid(rng: &mut fastrand::Rng) -> String {
    let (number, variant) = (rng.u128(..), rng.usize(..4));
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

/// With an end after each part; the same in every build, as a seed is.
fn hash(name: &[&str]) -> u64 {
    fnv::sum_64a(name.iter().flat_map(|part| part.bytes().chain([0xff])))
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
    fn what_has_a_name_has_its_uid_whatever_is_drawn_meanwhile() {
        let (one, other) = (Entropy::seeded(7), Entropy::seeded(7));
        let name = |name| ["configmaps", "default", name];
        let drawn = [one.uid_of(&name("a")), one.uid_of(&name("b")), one.uid_of(&name("a"))];
        other.uid();
        let again = [other.uid_of(&name("b")), other.uid_of(&name("a"))];
        assert_eq!([&drawn[1], &drawn[0]], [&again[0], &again[1]]);
        assert_eq!(drawn[2], other.uid_of(&name("a")), "the second of that name");
        assert_eq!(one.fork().uid_of(&name("a")), other.fork().uid_of(&name("a")));
        let all: std::collections::BTreeSet<_> = drawn.iter().flatten().collect();
        assert_eq!(all.len(), 3);
        assert_ne!(Entropy::seeded(8).uid_of(&name("a")), drawn[0]);
        assert_ne!(Entropy::seeded(7).uid_of(&["configmaps", "defaulta", ""]), drawn[0]);
        assert_eq!(Entropy::from_system().uid_of(&name("a")), None);
    }

    /// Two that share a count are told apart all the same.
    #[test]
    fn more_names_than_counts_have_uids_of_their_own() {
        let entropy = Entropy::seeded(7);
        let uids = (0..2 * COUNTS).map(|number| entropy.uid_of(&[&number.to_string()]));
        let different: std::collections::BTreeSet<_> = uids.flatten().collect();
        assert_eq!(different.len(), 2 * COUNTS);
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
