//! `gzip`, `gunzip` and `zcat`: real streams, which other programs read.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::bounds::{MAX_FILE_BYTES, ScriptFault};
use crate::interpreter::player::Player;

/// The first two bytes of a stream.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why bytes cannot be unpacked.
#[derive(Debug, PartialEq)]
pub(super) enum Unpacking {
    NoStream,
    /// They would be more than a file may have.
    TooMuch,
}

/// Whether bytes are packed.
pub(super) fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Packs bytes, into the same each time: no name and no time is in them.
pub(super) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // A vector takes every byte.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// What was packed, up to what a file may have.
pub(super) fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Unpacking> {
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(limit + 1).read_to_end(&mut out);
    match read {
        Err(_) => Err(Unpacking::NoStream),
        Ok(_) if out.len() > MAX_FILE_BYTES => Err(Unpacking::TooMuch),
        Ok(_) => Ok(out),
    }
}

/// Runs one of them: from a pipe to a pipe, or a file into another one beside it.
pub(super) fn run(player: &mut Player<'_>, name: &str, flags: &[&str], paths: &[&str]) {
    let has = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    let unpacks = name != "gzip" || has('d');
    let to_output = name == "zcat" || has('c') || paths.is_empty() || paths == ["-"];
    if paths.is_empty() || paths == ["-"] {
        let input = player.input_bytes();
        if let Some(made) = made(player, name, "stdin", &input, unpacks) {
            player.say_bytes(&made);
        }
        return;
    }
    for path in paths {
        let full = player.own_path(path);
        let Some(file) = player.file(&full).filter(|file| !file.is_folder) else {
            player.fail(&format!("{name}: {path}: No such file or directory\n"));
            continue;
        };
        if !player.handle_file(&file) {
            return;
        }
        let Some(made) = made(player, name, path, &file.content, unpacks) else { continue };
        if to_output {
            player.say_bytes(&made);
            continue;
        }
        let target = match (unpacks, path.strip_suffix(".gz").or(path.strip_suffix(".tgz"))) {
            (false, _) => format!("{path}.gz"),
            (true, Some(stem)) => stem.to_owned(),
            (true, None) => {
                player.fail(&format!("{name}: {path}: unknown suffix - ignored\n"));
                continue;
            }
        };
        match player.write_file(&target, made) {
            Ok(()) if has('k') => {}
            Ok(()) => player.put_file(full, None),
            Err(why) => player.fail(&format!("{name}: {target}: {why}\n")),
        }
    }
}

fn made(player: &mut Player<'_>, name: &str, path: &str, bytes: &[u8], unpacks: bool) -> Option<Vec<u8>> {
    if !player.handle(bytes.len() * 4) {
        return None;
    }
    if !unpacks {
        return Some(packed(bytes));
    }
    match unpacked(bytes) {
        Ok(made) => player.handle(made.len()).then_some(made),
        Err(Unpacking::TooMuch) => {
            player.stop(ScriptFault::Files);
            None
        }
        Err(Unpacking::NoStream) => {
            player.fail(&format!("{name}: {path}: not in gzip format\n"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_up_to_the_bound() {
        assert_eq!(unpacked(&packed(b"hello")).unwrap(), b"hello");
        assert!(is_packed(&packed(b"")));
        assert_eq!(unpacked(b"hello"), Err(Unpacking::NoStream));
        let bomb = packed(&vec![0; MAX_FILE_BYTES + 1]);
        assert!(bomb.len() < 100_000);
        assert_eq!(unpacked(&bomb), Err(Unpacking::TooMuch));
    }
}
