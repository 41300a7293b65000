//! Go's `hash/fnv`: small hashes that are the same in every build, for what is compared with what somebody
//! else has made, or made before. Strangers can choose what collides.

const OFFSET_32: u32 = 0x811c_9dc5;
const PRIME_32: u32 = 0x0100_0193;
const OFFSET_64: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME_64: u64 = 0x0100_0000_01b3;

/// FNV-1 (`fnv.New32`).
pub fn sum_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(OFFSET_32, |hash, byte| hash.wrapping_mul(PRIME_32) ^ u32::from(byte))
}

/// FNV-1a (`fnv.New32a`).
pub fn sum_32a(bytes: impl IntoIterator<Item = u8>) -> u32 {
    bytes.into_iter().fold(OFFSET_32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME_32))
}

/// FNV-1a (`fnv.New64a`).
pub fn sum_64a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    salted_64a(0, bytes)
}

/// As [`sum_64a`], another one for each salt; that of 0 is without.
pub fn salted_64a(salt: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME_64);
    bytes.into_iter().fold(OFFSET_64 ^ salt, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of Go's own tests.
    #[test]
    fn they_are_those_of_go() {
        let sums = ["", "a", "ab", "abc"].map(|text| (sum_32(text.bytes()), sum_32a(text.bytes())));
        assert_eq!(sums.map(|(one, _)| one), [0x811c_9dc5, 0x050c_5d7e, 0x7077_2d38, 0x439c_2f4b]);
        assert_eq!(sums.map(|(_, other)| other), [0x811c_9dc5, 0xe40c_292c, 0x4d25_05ca, 0x1a47_e90b]);
        assert_eq!(sum_64a("abc".bytes()), 0xe71f_a219_0541_574b);
        assert_ne!(salted_64a(1, "abc".bytes()), salted_64a(2, "abc".bytes()));
    }
}
