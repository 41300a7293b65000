//! Files that hold secrets: written whole or not at all, and readable by their owner alone; and those that
//! users name, which need not be files.

#![warn(missing_docs, unreachable_pub)]

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes `content` with mode 0600 beside `path` and renames it there, so that nobody ever reads half of it.
///
/// # Errors
/// What the file system says.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let temporary = folder.join(format!(".{name}.{}", std::process::id()));
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// As [`write_private`] to a file that a user has named; a pipe or a device is written to as it is, since
/// whoever reads there would never see what is put in its place.
///
/// # Errors
/// What the file system says.
pub fn write_named(path: &Path, content: &[u8]) -> io::Result<()> {
    if !is_stream(path) {
        return write_private(path, content);
    }
    fs::OpenOptions::new().append(true).open(path)?.write_all(content)
}

/// Whether a path is no place for a file: a pipe, a socket or a device, or a name of one, as `/dev/stdout`.
pub fn is_stream(path: &Path) -> bool {
    const FOLDERS: [&str; 3] = ["/dev", "/dev/fd", "/proc/self/fd"];
    path.parent().is_some_and(|folder| FOLDERS.iter().any(|stream| folder == Path::new(stream)))
        || fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below").join("secret");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(is_stream(&path) && write_named(&path, b"one").is_err());
        assert!(is_stream(&path), "it is still there");
        for stream in ["/dev/null", "/dev/stdout", "/dev/fd/7", "/proc/self/fd/1"] {
            assert!(is_stream(Path::new(stream)), "{stream}");
        }
        write_named(Path::new("/dev/null"), b"one").unwrap();
        let path = dir.path().join("file");
        write_named(&path, b"one").unwrap();
        assert_eq!((is_stream(&path), fs::read(&path).unwrap()), (false, b"one".into()));
        assert!(!is_stream(dir.path()) && !is_stream(&dir.path().join("none")));
    }
}
