//! `--ready-file`, `--ready-fd`: who started the process is told when all is ready, so that nobody has to
//! read what it prints.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Failure;

/// Whom to tell.
pub(crate) struct Readiness {
    file: Option<PathBuf>,
    descriptor: Option<i32>,
}

impl Readiness {
    /// A file that was left by somebody else is no sign: it goes.
    pub(crate) fn new(file: Option<&Path>, descriptor: Option<i32>) -> Readiness {
        if let Some(file) = file {
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
        if let Some(number) = self.descriptor {
            // By its path, since a number is nothing that one may write to safely; who waits reads a line.
            let path = format!("/dev/fd/{number}");
            let told = fs::OpenOptions::new().append(true).open(&path);
            told.and_then(|mut told| told.write_all(line.as_bytes()))
                .map_err(|error| Failure::new(format!("--ready-fd {number}"), error))?;
        }
        Ok(())
    }
}

/// Whoever sees the file sees all of it.
fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}
