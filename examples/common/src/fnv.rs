//! A hash that tells files and corpora apart.

/// The 64-bit FNV-1a hash, which detects accidental changes, not malicious ones.
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a text and its end, so that "ab", "c" differs from "a", "bc".
    pub fn write_text(&mut self, text: &str) {
        self.write(text.as_bytes());
        self.write(b"\n");
    }

    /// The hash as 16 digits.
    pub fn to_hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}
