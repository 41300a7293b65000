//! Header blocks: names and values, compressed as one stream for each direction of a connection.

use std::collections::BTreeMap;

use flate2::{Compress, Compression, FlushCompress};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::dictionary::DICTIONARY;
use crate::error::ConnectionError;

/// The headers of a stream: their names are in small letters.
pub type Headers = BTreeMap<String, String>;

/// How far back a compressed stream may point.
const WINDOW: usize = 32 << 10;
/// The largest header block that is read, decompressed. Bound of what a few compressed bytes may become.
pub(crate) const MAX_BLOCK_BYTES: usize = 64 << 10;
/// Before the stream: two bytes of zlib, of which one bit says that a dictionary's number follows.
const ZLIB_HEADER: usize = 2;
const HAS_DICTIONARY: u8 = 0x20;
const DICTIONARY_NUMBER: usize = 4;

/// Reads the blocks of one direction. What was read before is needed for what comes.
pub(crate) struct Decompressor {
    inflate: Box<DecompressorOxide>,
    /// A ring, into which the compressed stream points back; the dictionary stands at its beginning.
    window: Vec<u8>,
    at: usize,
    has_begun: bool,
}

impl Decompressor {
    /// Of a new connection.
    pub(crate) fn new() -> Decompressor {
        let mut window = vec![0; WINDOW];
        window[..DICTIONARY.len()].copy_from_slice(&DICTIONARY);
        Decompressor { inflate: Box::default(), window, at: DICTIONARY.len(), has_begun: false }
    }

    /// The headers of a block.
    pub(crate) fn read(&mut self, block: &[u8]) -> Result<Headers, ConnectionError> {
        parse(&self.decompress(self.skip_header(block)?)?)
            .ok_or(ConnectionError::Protocol("malformed headers"))
    }

    /// Before the first block stands zlib's header, after none a checksum.
    fn skip_header<'a>(&self, block: &'a [u8]) -> Result<&'a [u8], ConnectionError> {
        if self.has_begun {
            return Ok(block);
        }
        let has_dictionary = block.get(1).is_some_and(|flags| flags & HAS_DICTIONARY != 0);
        let skipped = ZLIB_HEADER + if has_dictionary { DICTIONARY_NUMBER } else { 0 };
        block.get(skipped..).ok_or(ConnectionError::Protocol("headers without a beginning"))
    }

    fn decompress(&mut self, mut compressed: &[u8]) -> Result<Vec<u8>, ConnectionError> {
        self.has_begun = true;
        let mut block = Vec::new();
        loop {
            let flags = inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
            let (status, read, written) =
                decompress(&mut self.inflate, compressed, &mut self.window, self.at, flags);
            compressed = &compressed[read..];
            block.extend_from_slice(&self.window[self.at..self.at + written]);
            self.at = (self.at + written) % WINDOW;
            if block.len() > MAX_BLOCK_BYTES {
                return Err(ConnectionError::Protocol("headers are too large"));
            }
            match status {
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if compressed.is_empty() => return Ok(block),
                _ => return Err(ConnectionError::Protocol("headers cannot be decompressed")),
            }
        }
    }
}

/// Writes the blocks of one direction. It needs no dictionary: whoever reads is told so.
pub(crate) struct Compressor(Compress);

impl Compressor {
    /// Of a new connection.
    pub(crate) fn new() -> Compressor {
        Compressor(Compress::new(Compression::fast(), true))
    }

    /// A block of these headers.
    pub(crate) fn write(&mut self, headers: &Headers) -> Vec<u8> {
        let block = print(headers);
        // What cannot be made smaller grows by five bytes for each 64 KiB, and the flush takes a few.
        let mut out = Vec::with_capacity(block.len() + 64);
        self.0.compress_vec(&block, &mut out, FlushCompress::Sync).expect("there is room for all of it");
        out
    }
}

fn print(headers: &Headers) -> Vec<u8> {
    let mut block = (headers.len() as u32).to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        block.extend_from_slice(&(text.len() as u32).to_be_bytes());
        block.extend_from_slice(text.as_bytes());
    }
    block
}

fn parse(mut block: &[u8]) -> Option<Headers> {
    let count = number(&mut block)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = text(&mut block)?.to_ascii_lowercase();
        headers.insert(name, text(&mut block)?);
    }
    Some(headers)
}

fn number(block: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = block.split_first_chunk::<4>()?;
    *block = rest;
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
}

fn text(block: &mut &[u8]) -> Option<String> {
    let length = number(block)?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}
