//! Numbers in a file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::{Arc, Mutex},
};

/// `left` bytes from byte `at` on of a file that several readers share.
#[derive(Clone)]
pub(super) struct FilePart {
    pub(super) file: Arc<Mutex<File>>,
    pub(super) at: u64,
    pub(super) left: u64,
}

impl Read for FilePart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = self.file.lock();
        let mut file = file.map_err(|_| io::Error::other("another reader of the file panicked"))?;
        file.seek(SeekFrom::Start(self.at))?;
        let count = Read::by_ref(&mut *file).take(self.left).read(buffer)?;
        if count == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "the file has become shorter, and the last {} bytes of the tensor are missing",
                    self.left
                ),
            ));
        }
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
