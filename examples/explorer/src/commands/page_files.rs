//! The files of the page, some of them compressed.

use std::{fs, io::Read, path::Path};

use example_common::{
    error::Error,
    files::{self, FileError},
};
use flate2::{Compression, read::GzDecoder, read::GzEncoder};

/// The bytes of a file of the page.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    fs::read(path).map_err(FileError::of("read", path))
}

/// What is compressed in a file of the page.
pub fn read_compressed(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let mut decoder = GzDecoder::new(fs::File::open(path).map_err(FileError::of("read", path))?);
    let read = decoder.read_to_end(&mut bytes);
    read.map_err(FileError::of("decompress", path))?;
    Ok(bytes)
}

/// Writes a file of the page, compressed. Returns its size in bytes.
pub fn write_compressed(path: &Path, bytes: &[u8]) -> Result<usize, Error> {
    let mut compressed = Vec::new();
    GzEncoder::new(bytes, Compression::best()).read_to_end(&mut compressed)?;
    files::replace(path, &compressed)?;
    Ok(compressed.len())
}
