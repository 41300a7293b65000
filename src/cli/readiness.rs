//! `--ready-file`, `--ready-fd`: who started the process is told when all is ready, so that nobody has to
//! read what it prints.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use files::is_stream;

use super::Failure;

/// The access mode of a descriptor in the flags that Linux tells of it, and that of one for reading alone.
const ACCESS_MODE: u32 = 0o3;
const READ_ONLY: u32 = 0;

/// A descriptor that whoever started the process has opened for us.
pub(crate) struct ReadyDescriptor {
    number: i32,
    /// Its own opening of the same file or pipe: whatever becomes of the number, the line goes there.
    opened: File,
}

impl ReadyDescriptor {
    /// Looks at it, before anything of ours is open that might have that number.
    pub(crate) fn hold(number: i32) -> Result<ReadyDescriptor, Failure> {
        let refused = |why: &str| {
            Failure(format!(
                "--ready-fd {number}: {why}; give the number of a descriptor that is open for writing"
            ))
        };
        if is_for_reading_alone(number) {
            return Err(refused("it is open for reading alone"));
        }
        // By its path, since a number is nothing that one may write to safely.
        let opened = OpenOptions::new().append(true).open(format!("/dev/fd/{number}"));
        let opened = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => refused("no such descriptor is open"),
            _ => refused(&error.to_string()),
        })?;
        Ok(ReadyDescriptor { number, opened })
    }
}

/// A pipe could be opened for writing at its other end, too, and then nobody would read the line. Where the
/// system does not tell, opening it does.
fn is_for_reading_alone(number: i32) -> bool {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
    let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS_MODE == READ_ONLY)
}

/// Whom to tell.
pub(crate) struct Readiness {
    file: Option<PathBuf>,
    descriptor: Option<ReadyDescriptor>,
}

impl Readiness {
    /// A file that was left by somebody else is no sign: it goes.
    pub(crate) fn new(file: Option<&Path>, descriptor: Option<ReadyDescriptor>) -> Readiness {
        if let Some(file) = file.filter(|file| !is_stream(file)) {
            let _ = fs::remove_file(file);
        }
        Readiness { file: file.map(Path::to_owned), descriptor }
    }

    /// Tells them, with the address as a line.
    pub(crate) fn tell(&self, server: &str) -> Result<(), Failure> {
        let line = format!("{server}\n");
        if let Some(file) = &self.file {
            write_whole(file, &line)
                .map_err(|error| Failure::new(format!("--ready-file {}", file.display()), error))?;
        }
        if let Some(ReadyDescriptor { number, opened }) = &self.descriptor {
            let mut told = opened;
            told.write_all(line.as_bytes())
                .map_err(|error| Failure::new(format!("--ready-fd {number}"), error))?;
        }
        Ok(())
    }
}

/// Whoever sees the file sees all of it. In a pipe or a device there is nothing to see before.
fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    if is_stream(file) {
        return OpenOptions::new().append(true).open(file)?.write_all(text.as_bytes());
    }
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    /// A number that nobody has: descriptors are given from the lowest.
    const NOBODYS: i32 = 987;

    fn refusal(number: i32) -> String {
        ReadyDescriptor::hold(number).err().map(|Failure(why)| why).unwrap_or_default()
    }

    #[test]
    fn the_line_goes_to_what_was_open_at_the_start() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let readiness = Readiness::new(None, Some(ReadyDescriptor::hold(writer.as_raw_fd()).unwrap()));
        // From now on others may have the number.
        drop(writer);
        readiness.tell("https://server").unwrap();
        drop(readiness);
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        assert_eq!(told, "https://server\n");
    }

    #[test]
    fn a_file_of_before_is_no_sign_and_a_device_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ready");
        fs::write(&file, "of before").unwrap();
        let readiness = Readiness::new(Some(&file), None);
        assert!(!file.exists());
        readiness.tell("https://server").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "https://server\n");
        let null = Path::new("/dev/null");
        Readiness::new(Some(null), None).tell("https://server").unwrap();
        assert!(is_stream(null) && fs::read(null).unwrap().is_empty());
    }

    #[test]
    fn what_nobody_can_write_to_is_refused_at_once() {
        assert!(refusal(NOBODYS).starts_with("--ready-fd 987: no such descriptor is open; "));
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(refusal(reader.as_raw_fd()).contains("for reading alone"));
    }
}
