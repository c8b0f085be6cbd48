//! Recordings in WAV, window by window, as speech models hear them: one channel, 16,000 samples a second.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

use burn_attn_models::speech::LogMel;
use example_common::error::Error;
use hound::{SampleFormat, WavReader, WavSpec};
use rubato::{
    Fft, FixedSync, Resampler,
    audioadapter_buffers::{direct::SequentialSlice, owned::InterleavedOwned},
};

/// What a header says at least that was written before the length was known (bytes): samples of 1 to 4 bytes in up to 10 channels.
const UNKNOWN: u32 = 0x7fff_0000 / 5040 * 5040;

/// Notes when there is no more: the reader of WAV files calls that an error like others.
struct Watched<R> {
    reader: R,
    is_over: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.is_over.set(count == 0 && !buffer.is_empty());
        Ok(count)
    }
}

/// `reader`, with the length that is not known in the beginning of a file that ffmpeg writes into a pipe, which is no number of samples,
/// replaced by [`UNKNOWN`].
fn with_length(mut reader: impl Read) -> io::Result<impl Read> {
    const HEADER: u64 = 4096;
    const MARK: &[u8] = b"data\xff\xff\xff\xff";
    let mut header = Vec::new();
    reader.by_ref().take(HEADER).read_to_end(&mut header)?;
    if let Some(at) = header.windows(MARK.len()).position(|bytes| bytes == MARK) {
        header[at + 4..at + MARK.len()].copy_from_slice(&UNKNOWN.to_le_bytes());
    }
    Ok(io::Cursor::new(header).chain(reader))
}

/// A recording that is read window by window.
pub struct Recording<'a> {
    reader: WavReader<Watched<Box<dyn Read + 'a>>>,
    spec: WavSpec,
    /// Samples of a window, as speech models hear them.
    window: usize,
    is_over: Rc<Cell<bool>>,
    /// Whether the file has ended before its header says so.
    is_cut: bool,
}

impl<'a> Recording<'a> {
    /// Reads the header of a recording, which is then read in windows that have at most so many samples once they are resampled.
    ///
    /// # Errors
    ///
    /// When it is not a WAV file of whole numbers or f32.
    pub fn new(reader: impl Read + 'a, window: usize) -> Result<Self, Error> {
        let is_over = Rc::new(Cell::new(false));
        let watched = Watched {
            reader: Box::new(with_length(reader)?) as Box<dyn Read>,
            is_over: is_over.clone(),
        };
        let reader = WavReader::new(watched).map_err(|error| match is_over.get() {
            true => Error::from("it ends before there are samples"),
            false => format!("it cannot be read as a WAV file: {error}").into(),
        })?;
        let spec = reader.spec();
        let WavSpec {
            channels,
            sample_rate,
            ..
        } = spec;
        if channels == 0 || sample_rate == 0 {
            return Err(
                format!("it has {channels} channels of {sample_rate} samples a second").into(),
            );
        }
        Ok(Self {
            reader,
            spec,
            window,
            is_over,
            is_cut: false,
        })
    }

    /// Whether the file has ended before its header says so.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next window, the mean of all channels, resampled; `None` after the last one.
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
        if samples.is_empty() {
            return Ok(None);
        }
        let mut samples = resampled(samples, rate)?;
        samples.truncate(self.window);
        Ok(Some(samples))
    }

    /// The samples of the next window, of which there may be none.
    fn samples<S: hound::Sample>(&mut self, number: impl Fn(S) -> f32) -> Result<Vec<f32>, Error> {
        let channels = usize::from(self.spec.channels);
        let most = self.window * self.spec.sample_rate as usize / LogMel::SAMPLE_RATE;
        let length_is_known =
            self.reader.len() < UNKNOWN / u32::from(self.spec.bits_per_sample / 8).max(1);
        let mut frames = Vec::new();
        let mut samples = self.reader.samples::<S>();
        while frames.len() < most && !self.is_over.get() {
            let mut sum = 0.0;
            for _ in 0..channels {
                match samples.next() {
                    Some(Ok(sample)) => sum += number(sample),
                    None => return Ok(frames),
                    // A recorder that writes into a pipe does not know the length.
                    Some(Err(_)) if self.is_over.get() => {
                        self.is_cut = length_is_known;
                        return Ok(frames);
                    }
                    Some(Err(error)) => return Err(error.into()),
                }
            }
            frames.push(sum / channels as f32);
        }
        Ok(frames)
    }
}

/// Samples of a recording with `rate` samples a second, as many a second as speech models hear.
fn resampled(samples: Vec<f32>, rate: usize) -> Result<Vec<f32>, Error> {
    if rate == LogMel::SAMPLE_RATE {
        return Ok(samples);
    }
    /// Samples that are transformed together.
    const CHUNK: usize = 1024;
    let mut resampler = Fft::<f32>::new(rate, LogMel::SAMPLE_RATE, CHUNK, 1, FixedSync::Input)?;
    let len = samples.len();
    let input = SequentialSlice::new(&samples, 1, len)?;
    let output: InterleavedOwned<f32> = resampler.process_all(&input, len, None)?;
    Ok(output.take_data())
}
