//! First tokens that all sequences have in common, held once.

use super::buffer::Buffer;

/// The keys and values of the first tokens of every sequence. They count among the dropped ones of each.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    pub(super) keys: Buffer,
    pub(super) values: Buffer,
    pub(super) len: usize,
}

impl Prefix {
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes() + self.values.bytes()
    }
}
