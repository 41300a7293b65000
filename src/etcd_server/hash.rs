//! CRC-32 with Castagnoli's polynomial (Go's `crc32.Castagnoli`), which etcd hashes its keys with.

/// The polynomial, its bits turned round.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// A hash on its way.
pub(crate) struct Hasher(u32);

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher(u32::MAX)
    }
}

impl Hasher {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = (self.0 ^ u32::from(*byte)) & 0xff;
            self.0 = TABLE[at as usize] ^ (self.0 >> 8);
        }
    }

    pub(crate) fn finish(&self) -> u32 {
        !self.0
    }
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut rest = at as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[at] = rest;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_others_compute() {
        let mut hasher = Hasher::default();
        hasher.write(b"1234");
        hasher.write(b"56789");
        assert_eq!(hasher.finish(), 0xe306_9283);
    }
}
