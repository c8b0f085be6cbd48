//! Blocks of quantised numbers, as ggml packs them, read as f32.
//!
//! Source: `ggml-common.h` of ggml.

use std::io::{self, Read};

use burn::tensor::f16;

use super::file_part::FilePart;

/// Numbers decoded at a time: a mebibyte of f32.
const MANY: usize = 1 << 18;

/// A type of blocks with factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantised {
    /// 32 numbers of 8 bits behind a factor in f16.
    Q8,
    /// 32 numbers of 4 bits, from −8 to 7, behind a factor in f16: the low halves of 16 bytes, then the high ones.
    Q4,
    /// 256 numbers of 6 bits, from −32 to 31: 128 bytes with four bits of each, 64 with two, a factor of 8 bits for every 16, one in f16 for all.
    Q6K,
}

impl Quantised {
    /// Numbers of a block.
    pub(super) fn numbers(self) -> usize {
        match self {
            Self::Q8 | Self::Q4 => 32,
            Self::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Q8 => 2 + 32,
            Self::Q4 => 2 + 16,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// The place of the block whose first number, as f32, is at byte `first`: blocks lie in rows, so every row begins with one.
    pub(super) fn place(self, first: usize) -> usize {
        let of_block = self.numbers() * size_of::<f32>();
        debug_assert!(first.is_multiple_of(of_block));
        first / of_block * self.bytes()
    }

    /// Appends the numbers of a block.
    fn decode(self, block: &[u8], decoded: &mut Vec<u8>) {
        let factor = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        let number = |at: usize| match self {
            Self::Q8 => factor(0) * f32::from(block[2 + at] as i8),
            Self::Q4 if at < 16 => factor(0) * (f32::from(block[2 + at] & 15) - 8.0),
            Self::Q4 => factor(0) * (f32::from(block[2 + at - 16] >> 4) - 8.0),
            Self::Q6K => {
                let (half, quarter, within) = (at / 128, at / 32 % 4, at % 32);
                let low = block[half * 64 + quarter % 2 * 32 + within] >> (quarter / 2 * 4) & 15;
                let high = block[128 + half * 32 + within] >> (quarter * 2) & 3;
                let scale = f32::from(block[192 + at / 16] as i8);
                // In this order, as ggml rounds.
                factor(208) * scale * (f32::from(low | high << 4) - 32.0)
            }
        };
        for at in 0..self.numbers() {
            decoded.extend_from_slice(&number(at).to_le_bytes());
        }
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
        let many = (MANY / self.kind.numbers()) as u64;
        let count = many.min(self.file.left / bytes as u64) as usize;
        self.packed.resize(count * bytes, 0);
        self.file.read_exact(&mut self.packed)?;
        self.decoded.clear();
        self.at = 0;
        self.decoded
            .reserve(count * self.kind.numbers() * size_of::<f32>());
        for block in self.packed.chunks_exact(bytes) {
            self.kind.decode(block, &mut self.decoded);
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
