//! Blocks of quantised numbers, as ggml packs them, read as f32.
//!
//! Source: `ggml-common.h` of ggml.

use std::io::{self, Read};

use burn::tensor::f16;

use super::FilePart;

/// Numbers of a block.
pub(super) const BLOCK: usize = 32;

/// Blocks decoded at a time: a mebibyte of f32.
const MANY: u64 = 8192;

/// A type of blocks of 32 numbers with a factor in f16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantised {
    /// Numbers of 8 bits.
    Q8,
    /// Numbers of 4 bits, from −8 to 7: the low halves of 16 bytes, then the high ones.
    Q4,
}

impl Quantised {
    /// Bytes of a block.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Q8 => 2 + BLOCK,
            Self::Q4 => 2 + BLOCK / 2,
        }
    }

    /// The place of the block whose first number, as f32, is at byte `first`: blocks lie in rows, so every row begins with one.
    pub(super) fn place(self, first: usize) -> usize {
        let of_block = BLOCK * size_of::<f32>();
        debug_assert!(first.is_multiple_of(of_block));
        first / of_block * self.bytes()
    }

    /// The numbers of a block.
    fn decode(self, block: &[u8]) -> [f32; BLOCK] {
        let factor = f16::from_le_bytes([block[0], block[1]]).to_f32();
        let packed = &block[2..];
        std::array::from_fn(|at| {
            let number = match self {
                Self::Q8 => i32::from(packed[at] as i8),
                Self::Q4 if at < BLOCK / 2 => i32::from(packed[at] & 15) - 8,
                Self::Q4 => i32::from(packed[at - BLOCK / 2] >> 4) - 8,
            };
            factor * number as f32
        })
    }
}

/// The numbers of blocks as f32, little-endian.
pub(super) struct Blocks {
    kind: Quantised,
    file: FilePart,
    /// Blocks as they are in the file.
    packed: Vec<u8>,
    /// Their numbers. Those before byte `at` have been handed on.
    decoded: Vec<u8>,
    at: usize,
}

impl Blocks {
    pub(super) fn new(kind: Quantised, file: FilePart) -> Self {
        Self {
            kind,
            file,
            packed: Vec::new(),
            decoded: Vec::new(),
            at: 0,
        }
    }

    /// Reads and decodes the next blocks, if there are any.
    fn refill(&mut self) -> io::Result<()> {
        let bytes = self.kind.bytes();
        let count = MANY.min(self.file.left / bytes as u64) as usize;
        self.packed.resize(count * bytes, 0);
        self.file.read_exact(&mut self.packed)?;
        self.decoded.clear();
        self.at = 0;
        self.decoded.reserve(count * BLOCK * size_of::<f32>());
        for block in self.packed.chunks_exact(bytes) {
            for number in self.kind.decode(block) {
                self.decoded.extend_from_slice(&number.to_le_bytes());
            }
        }
        Ok(())
    }
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.decoded.len() {
            self.refill()?;
        }
        let count = (&self.decoded[self.at..]).read(buffer)?;
        self.at += count;
        Ok(count)
    }
}
