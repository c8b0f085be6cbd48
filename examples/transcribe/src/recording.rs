//! Recordings in WAV, window by window, as speech models read them: one channel, 16,000 samples a second.

use std::{
    cell::Cell,
    io::{self, Read},
    ops::RangeInclusive,
    rc::Rc,
};

use burn_attn_models::speech::LogMel;
use example_common::error::Error;
use hound::{SampleFormat, WavReader, WavSpec};
use rubato::{
    Fft, FixedSync, Resampler,
    audioadapter_buffers::{direct::SequentialSlice, owned::InterleavedOwned},
};

/// The least length of the samples that counts as unknown (bytes): what recorders write that do not know it yet is close to the greatest number
/// of 31 or 32 bits.
const UNKNOWN: u32 = 0x7fff_0000;
/// The sample rates that can be read (samples a second).
const RATES: RangeInclusive<u32> = 1_000..=768_000;

/// Records the end of the stream, which the reader of WAV files reports as an error like any other.
struct Watched<R> {
    reader: R,
    at_end: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.at_end.set(count == 0 && !buffer.is_empty());
        Ok(count)
    }
}

/// Reads up to the samples: the header with nothing but the format, in which the length is one that the reader of WAV files takes, and whether
/// the length is unknown.
fn header(reader: &mut impl Read) -> Result<(Vec<u8>, bool), Error> {
    /// More than any format has (bytes).
    const LONGEST: u32 = 1 << 10;
    let mut riff = [0; 12];
    reader.read_exact(&mut riff)?;
    if !(riff.starts_with(b"RIFF") && riff.ends_with(b"WAVE")) {
        return Err("it is not a WAV file".into());
    }
    let riff_len = u32::from_le_bytes(riff[4..8].try_into()?);
    // What the length of the file counts: "WAVE" and the chunks up to here (bytes).
    let mut before: u64 = 4;
    let mut format = Vec::new();
    loop {
        let mut chunk = [0; 8];
        reader.read_exact(&mut chunk)?;
        let (name, len) = chunk.split_at(4);
        let len = u32::from_le_bytes(len.try_into()?);
        match name {
            b"fmt " if len <= LONGEST => {
                format = vec![0; len as usize];
                reader.read_exact(&mut format)?;
            }
            b"data" => {
                let Some(block) = format.get(12..14) else {
                    return Err("it has no format before its samples".into());
                };
                let block = u32::from(u16::from_le_bytes(block.try_into()?)).max(1);
                // A length of 0 is true where the file says that other chunks follow.
                let is_last = u64::from(riff_len) <= before + 8 || riff_len >= UNKNOWN;
                let is_unknown = len >= UNKNOWN || len == 0 && is_last;
                let len = if is_unknown { u32::MAX - LONGEST } else { len };
                let len = len / block * block;
                let size = (format.len() as u32).to_le_bytes();
                let data = len.to_le_bytes();
                let parts: [&[u8]; 6] = [&riff, b"fmt ", &size, &format, b"data", &data];
                return Ok((parts.concat(), is_unknown));
            }
            _ => skip(reader, u64::from(len))?,
        }
        // Chunks begin at even places.
        skip(reader, u64::from(len % 2))?;
        before += 8 + u64::from(len) + u64::from(len % 2);
    }
}

fn skip(reader: &mut impl Read, bytes: u64) -> io::Result<()> {
    io::copy(&mut reader.take(bytes), &mut io::sink()).map(drop)
}

/// A recording that is read window by window.
pub struct Recording<'a> {
    reader: WavReader<Watched<Box<dyn Read + 'a>>>,
    spec: WavSpec,
    /// Samples of a window at the rate of speech models.
    window: usize,
    at_end: Rc<Cell<bool>>,
    length_is_unknown: bool,
    /// Frames that have been read.
    frames: usize,
    warning: Option<&'static str>,
}

impl<'a> Recording<'a> {
    /// Reads the header of a recording, which is then read in windows that have at most so many samples once they are resampled.
    ///
    /// # Errors
    ///
    /// When it is not a WAV file of integers of 8 to 32 bits or of f32, or has fewer than 1,000 or more than 768,000 samples a second.
    pub fn new(mut reader: impl Read + 'a, window: usize) -> Result<Self, Error> {
        let (header, length_is_unknown) =
            header(&mut reader).map_err(|error| match error.downcast_ref::<io::Error>() {
                Some(end) if end.kind() == io::ErrorKind::UnexpectedEof => {
                    "it ends before its samples".into()
                }
                _ => error,
            })?;
        let at_end = Rc::new(Cell::new(false));
        let watched = Watched {
            reader: Box::new(io::Cursor::new(header).chain(reader)) as Box<dyn Read>,
            at_end: at_end.clone(),
        };
        let reader = WavReader::new(watched)
            .map_err(|error| format!("it cannot be read as a WAV file: {error}"))?;
        let spec = reader.spec();
        let rate = spec.sample_rate;
        if !RATES.contains(&rate) {
            let (least, most) = (RATES.start(), RATES.end());
            return Err(format!(
                "it has {rate} samples a second, but {least} to {most} can be read"
            )
            .into());
        }
        Ok(Self {
            reader,
            spec,
            window,
            at_end,
            length_is_unknown,
            frames: 0,
            warning: None,
        })
    }

    /// What a listener should know of a recording that has been read.
    pub fn warning(&self) -> Option<&'static str> {
        self.warning
    }

    /// The next window, the mean of all channels, resampled; `None` after the last one. After a whole window, a rest of less than a frame of 20 ms
    /// is left out.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn next_window(&mut self) -> Result<Option<Vec<f32>>, Error> {
        let rate = self.spec.sample_rate as usize;
        let samples = match self.spec.sample_format {
            SampleFormat::Float => self.samples(|sample: f32| sample)?,
            SampleFormat::Int => {
                let scale = 0.5_f32.powi(i32::from(self.spec.bits_per_sample) - 1);
                self.samples(|sample: i32| sample as f32 * scale)?
            }
        };
        let is_rest = samples.len() < rate / 50 && self.frames > samples.len();
        if samples.is_empty() || is_rest {
            return Ok(None);
        }
        let mut samples = resampled(samples, rate)?;
        samples.truncate(self.window);
        Ok(Some(samples))
    }

    /// The samples of the next window, of which there may be none.
    fn samples<S: hound::Sample>(&mut self, to_f32: impl Fn(S) -> f32) -> Result<Vec<f32>, Error> {
        let channels = usize::from(self.spec.channels);
        let most = self.window * self.spec.sample_rate as usize / LogMel::SAMPLE_RATE;
        let mut frames = Vec::new();
        let mut samples = self.reader.samples::<S>();
        while frames.len() < most && !self.at_end.get() {
            let mut sum = 0.0;
            for _ in 0..channels {
                match samples.next() {
                    Some(Ok(sample)) => sum += to_f32(sample),
                    None => {
                        if self.length_is_unknown && !self.at_end.get() {
                            self.warning = Some("is longer than 4 GiB, and its rest is not read");
                        }
                        return Ok(frames);
                    }
                    // A recorder that writes into a pipe does not know the length.
                    Some(Err(_)) if self.at_end.get() => {
                        if !self.length_is_unknown {
                            self.warning = Some("is shorter than its header says");
                        }
                        return Ok(frames);
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
            self.frames += 1;
            if !sum.is_finite() {
                return Err(format!("frame {} is {sum}", self.frames - 1).into());
            }
            frames.push(sum / channels as f32);
        }
        Ok(frames)
    }
}

/// Samples of a recording with `rate` samples a second, resampled to [`LogMel::SAMPLE_RATE`].
fn resampled(samples: Vec<f32>, rate: usize) -> Result<Vec<f32>, Error> {
    if rate == LogMel::SAMPLE_RATE {
        return Ok(samples);
    }
    /// Samples of a call of the resampler.
    const CHUNK: usize = 1024;
    let mut resampler = Fft::<f32>::new(rate, LogMel::SAMPLE_RATE, CHUNK, 1, FixedSync::Input)?;
    let len = samples.len();
    let input = SequentialSlice::new(&samples, 1, len)?;
    let output: InterleavedOwned<f32> = resampler.process_all(&input, len, None)?;
    Ok(output.take_data())
}
