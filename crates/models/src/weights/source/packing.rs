//! How files store numbers: as they are, or in the quantised blocks of ggml, which are read as f32.
//!
//! Source: `ggml-common.h` of ggml.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::Range,
    sync::{Arc, Mutex},
};

use burn::tensor::{DType, f16};

use crate::weights::{Reason, ensure};

/// How a tensor's numbers are stored, in blocks that do not cross its rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packing {
    /// Numbers of this dtype.
    Float(DType),
    /// 32 numbers of 8 bits after a factor in f16.
    Q8,
    /// 32 numbers of 4 bits, from −8 to 7, after a factor in f16: the low halves of 16 bytes, then the high ones.
    Q4,
    /// 256 numbers of 6 bits, from −32 to 31: 128 bytes with four bits of each, 64 with two, a factor of 8 bits for every 16, one in f16 for all.
    Q6K,
}

/// The packings that are read, by the names that safetensors and ggml give them.
const PACKINGS: [(&str, Packing); 7] = [
    ("F64", Packing::Float(DType::F64)),
    ("F32", Packing::Float(DType::F32)),
    ("F16", Packing::Float(DType::F16)),
    ("BF16", Packing::Float(DType::BF16)),
    ("Q8_0", Packing::Q8),
    ("Q4_0", Packing::Q4),
    ("Q6_K", Packing::Q6K),
];

/// How many numbers a tensor of this shape has; `None` if that overflows.
pub(in crate::weights) fn count(shape: &[usize]) -> Option<usize> {
    let mut sizes = shape.iter();
    sizes.try_fold(1, |count: usize, &size| count.checked_mul(size))
}

impl Packing {
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut packings = PACKINGS.iter();
        packings.find_map(|(known, packing)| (*known == name).then_some(*packing))
    }

    /// The dtype as which the numbers are read.
    pub(super) fn dtype(self) -> DType {
        match self {
            Self::Float(dtype) => dtype,
            Self::Q8 | Self::Q4 | Self::Q6K => DType::F32,
        }
    }

    /// Numbers and bytes of a block.
    fn block(self) -> [usize; 2] {
        match self {
            Self::Float(dtype) => [1, dtype.size()],
            Self::Q8 => [32, 2 + 32],
            Self::Q4 => [32, 2 + 16],
            Self::Q6K => [256, 128 + 64 + 16 + 2],
        }
    }

    /// Bytes of a tensor; `None` if there can be no such tensor.
    pub(super) fn size(self, shape: &[usize]) -> Option<u64> {
        let [numbers, bytes] = self.block();
        if !shape.last().unwrap_or(&1).is_multiple_of(numbers) {
            return None;
        }
        Some((count(shape)? / numbers).checked_mul(bytes)? as u64)
    }

    fn unpacked(self, packed: Vec<u8>) -> Vec<u8> {
        if let Self::Float(_) = self {
            return packed;
        }
        let [numbers, bytes] = self.block();
        let mut unpacked = Vec::with_capacity(packed.len() / bytes * numbers * size_of::<f32>());
        for block in packed.chunks_exact(bytes) {
            for at in 0..numbers {
                unpacked.extend_from_slice(&self.number(block, at).to_le_bytes());
            }
        }
        unpacked
    }

    /// A number of a quantised block.
    fn number(self, block: &[u8], at: usize) -> f32 {
        let factor = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
        match self {
            Self::Float(_) => unreachable!("it is no block"),
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
        }
    }
}

/// The bytes of a tensor in a file that several tensors share.
#[derive(Clone, Debug)]
pub(super) struct FilePart {
    pub(super) file: Arc<Mutex<File>>,
    pub(super) start: u64,
    pub(super) len: u64,
}

impl FilePart {
    /// Reads these numbers of the tensor, which are whole blocks.
    pub(super) fn numbers(
        &self,
        packing: Packing,
        numbers: Range<usize>,
    ) -> Result<Vec<u8>, Reason> {
        let [of_block, bytes] = packing.block();
        let mut packed = vec![0; numbers.len() / of_block * bytes];
        let start = self.start + (numbers.start / of_block * bytes) as u64;
        let mut file = self
            .file
            .lock()
            .map_err(|_| "another reader of the file panicked")?;
        let missing = (self.start + self.len).saturating_sub(file.metadata()?.len());
        ensure!(
            missing == 0,
            "the file has become shorter, and the last {missing} bytes of the tensor are missing"
        );
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut packed)?;
        Ok(packing.unpacked(packed))
    }
}
