//! The log: a line for each event, in a file that is renamed when it is full
//! (`plugin/audit/log`, with lumberjack's names).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::{NaiveDateTime, TimeDelta};
use flate2::Compression;
use flate2::write::GzEncoder;
use sync::Mutex;

use super::event::AuditEvent;
use clock::Clock;

const TIMESTAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const COMPRESSED: &str = ".gz";

/// Where and how the log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `-` is the standard output.
    pub path: PathBuf,
    /// JSON, or upstream's old lines.
    pub is_legacy: bool,
    /// A file may be so large; 0 is without bound.
    pub max_size_bytes: u64,
    /// So many full files are kept; 0 is all.
    pub max_backups: usize,
    /// They are kept so many days; 0 is for ever.
    pub max_age_days: i64,
    /// Full files are compressed.
    pub compresses: bool,
}

/// An open log.
pub(super) struct AuditLog {
    config: LogConfig,
    clock: Clock,
    open: Mutex<Option<OpenLog>>,
}

struct OpenLog {
    file: File,
    size: u64,
}

impl AuditLog {
    /// Nothing is opened before the first event.
    pub(super) fn new(config: LogConfig, clock: &Clock) -> AuditLog {
        AuditLog { config, clock: clock.clone(), open: Mutex::default() }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// What the file system says.
    pub(super) fn write(&self, event: &AuditEvent) -> io::Result<()> {
        let mut line = if self.config.is_legacy {
            event.legacy().into_bytes()
        } else {
            serde_json::to_vec(event).map_err(io::Error::other)?
        };
        line.push(b'\n');
        if self.config.path == Path::new("-") {
            return io::stdout().write_all(&line);
        }
        let mut open = self.open.lock();
        let most = self.config.max_size_bytes;
        let length = line.len() as u64;
        if open.is_none() {
            *open = Some(self.open()?);
        }
        if most > 0 && open.as_ref().is_some_and(|open| open.size > 0 && open.size + length > most) {
            *open = None;
            self.rotate()?;
            *open = Some(self.open()?);
        }
        let Some(open) = open.as_mut() else { return Ok(()) };
        open.file.write_all(&line)?;
        open.size += length;
        Ok(())
    }

    fn open(&self) -> io::Result<OpenLog> {
        if let Some(folder) = self.config.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.config.path)?;
        let size = file.metadata()?.len();
        Ok(OpenLog { file, size })
    }

    /// The full file gets the time into its name; what is too old or too much goes.
    fn rotate(&self) -> io::Result<()> {
        let now = self.clock.now().naive_utc();
        let (stem, extension) = self.name();
        let backup = format!("{stem}-{}{extension}", now.format(TIMESTAMP));
        fs::rename(&self.config.path, self.config.path.with_file_name(backup))?;
        let mut backups = self.backups()?;
        backups.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let LogConfig { max_backups, max_age_days, compresses, .. } = self.config;
        for (at, (time, path)) in backups.into_iter().enumerate() {
            let too_many = max_backups > 0 && at >= max_backups;
            let too_old = max_age_days > 0 && now - time > TimeDelta::days(max_age_days);
            if too_many || too_old {
                fs::remove_file(path)?;
            } else if compresses && !path.to_string_lossy().ends_with(COMPRESSED) {
                in_background(move || {
                    if let Err(error) = compress(&path) {
                        tracing::error!(%error, file = %path.display(), "unable to compress an audit log");
                    }
                });
            }
        }
        Ok(())
    }

    fn backups(&self) -> io::Result<Vec<(NaiveDateTime, PathBuf)>> {
        let folder = self.config.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let (stem, extension) = self.name();
        let time = |path: &Path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let name = name.strip_suffix(COMPRESSED).unwrap_or(&name);
            let stamp = name.strip_prefix(&format!("{stem}-"))?.strip_suffix(&extension)?;
            NaiveDateTime::parse_from_str(stamp, TIMESTAMP).ok()
        };
        let entries = fs::read_dir(folder.unwrap_or(Path::new(".")))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter_map(|path| Some((time(&path)?, path))).collect())
    }

    /// The name without its extension, and the extension with its dot.
    fn name(&self) -> (String, String) {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let extension = text(self.config.path.extension());
        let extension = if extension.is_empty() { extension } else { format!(".{extension}") };
        (text(self.config.path.file_stem()), extension)
    }
}

/// The file is replaced by a compressed one. What is half done goes, and is tried again when the log is full
/// the next time.
fn compress(path: &Path) -> io::Result<()> {
    let target = PathBuf::from(format!("{}{COMPRESSED}", path.display()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut encoder = GzEncoder::new(options.open(&target)?, Compression::default());
        io::copy(&mut File::open(path)?, &mut encoder)?;
        encoder.finish()?.sync_all()
    })();
    match written {
        Ok(()) => fs::remove_file(path),
        Err(error) => {
            let _ = fs::remove_file(&target);
            Err(error)
        }
    }
}

/// Not on the way of a request, where there is another.
fn in_background(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}
