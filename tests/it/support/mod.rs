//! What the tests stand on: a kubarium of their own, and the kubectls of this machine.

pub(crate) mod forward;
pub(crate) mod golden;
pub(crate) mod plain;
pub(crate) mod programs;
pub(crate) mod script;
pub(crate) mod test_cluster;
pub(crate) mod upstream;
pub(crate) mod webhook;
pub(crate) mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything may take before a test gives up. Not a promise of speed: a bound against hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A kubarium process of its own: own folder, own port, own kubeconfig. Stopped when dropped.
pub(crate) struct Up {
    folder: TempDir,
    child: Child,
}

impl Up {
    /// Starts one with 3 nodes.
    pub(crate) fn start() -> Up {
        Up::start_with(&["--nodes", "3"])
    }

    /// Starts one with these arguments to `up`.
    pub(crate) fn start_with(arguments: &[&str]) -> Up {
        Up::start_in(arguments, &[])
    }

    /// The same with environment variables.
    pub(crate) fn start_in(arguments: &[&str], environment: &[(&str, &str)]) -> Up {
        let folder = tempfile::tempdir().unwrap();
        let command = command(folder.path());
        Up::run(folder, command, arguments, environment)
    }

    /// The same by a shell that runs something before.
    pub(crate) fn start_after(shell: &str, arguments: &[&str]) -> Up {
        let folder = tempfile::tempdir().unwrap();
        let plain = command(folder.path());
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{shell}; exec \"$0\" \"$@\"")).arg(plain.get_program());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null());
        Up::run(folder, command, arguments, &[])
    }

    fn run(folder: TempDir, mut command: Command, arguments: &[&str], environment: &[(&str, &str)]) -> Up {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = command
            .args(["up", "--name", "test", "--kubeconfig"])
            .arg(folder.path().join("kubeconfig"))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut up = Up { folder, child };
        let record = up.folder.path().join("state").join("test.json");
        eventually("the cluster to be ready", || {
            if let Some(status) = up.child.try_wait().unwrap() {
                panic!("kubarium up ended with {status}:\n{}", up.log());
            }
            record.exists().then_some(())
        });
        up
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A folder for the test's files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A `kubarium` command that sees this cluster.
    pub(crate) fn kubarium(&self, arguments: &[&str]) -> Output {
        command(self.folder.path()).args(arguments).output().unwrap()
    }

    /// A kubectl that talks to this cluster.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Output {
        let mut kubectl = Command::new(&kubectls()[0]);
        kubectl.env("KUBECONFIG", self.folder.path().join("kubeconfig")).env("HOME", self.folder.path());
        kubectl.args(arguments).output().unwrap()
    }

    /// Writes a file and says where.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Sends its process a signal, as `-TERM`.
    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap().success());
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.signal("-KILL");
        self.wait();
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        let child = &mut self.child;
        eventually("kubarium to end", || child.try_wait().unwrap())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // One that has ended is waited for already: its number may be somebody else's by now.
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        }
        let start = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if start.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        if thread::panicking() {
            eprintln!("--- what kubarium printed ---\n{}", self.log());
        }
    }
}

/// A `kubarium` whose home and state are in `folder`.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubarium"));
    command
        .env("KUBARIUM_STATE_DIR", folder.join("state"))
        .env("HOME", folder)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Another program in the environment that [`command`] has.
pub(crate) fn at_home(mut program: Command, folder: &Path) -> Command {
    for (variable, value) in command(folder).get_envs() {
        match value {
            Some(value) => program.env(variable, value),
            None => program.env_remove(variable),
        };
    }
    program
}

/// The examples of one language in a document.
pub(crate) fn blocks(document: &Path, language: &str) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap();
    let begin = format!("```{language}\n");
    text.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Asks again and again until there is an answer.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A kubectl that talks to one cluster.
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Kubectl {
    /// Of a program, for a cluster.
    pub(crate) fn new(program: &Path, up: &Up) -> Kubectl {
        let folder = up.folder().to_owned();
        Kubectl { program: program.to_owned(), kubeconfig: folder.join("kubeconfig"), folder }
    }

    /// A command line as one would type it: words are parted by blanks; single quotes keep a word together.
    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// The command itself, for what must be run otherwise.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words(line))
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// What a command that must succeed prints.
    pub(crate) fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "kubectl {line}\n{out}{err}");
        out
    }

    /// What a command that must fail says.
    pub(crate) fn fails(&self, line: &str) -> String {
        let output = self.run(line);
        let (out, err) = texts(&output);
        assert!(!output.status.success(), "kubectl {line} should have failed:\n{out}{err}");
        err
    }

    /// Runs a command until what it prints is as wanted.
    pub(crate) fn until(&self, line: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let output = self.run(line);
            last = texts(&output).0;
            if output.status.success() && wanted(&last) {
                return last;
            }
            last += &texts(&output).1;
            thread::sleep(Duration::from_millis(50));
        }
        panic!("kubectl {line} never printed what was wanted; last:\n{last}");
    }
}

/// Standard output and standard error.
pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The oldest and the newest kubectl at hand: the one on PATH, and those of other versions beside it
/// (`kubectl.1.27`). There is at least one, or the test fails: it never passes by skipping.
pub(crate) fn kubectls() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.exists());
    let on_path = on_path.expect("no kubectl on PATH: run `make kubectl`, which installs Debian's");
    let real = fs::canonicalize(&on_path).unwrap();
    let mut versions: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(real.parent().unwrap()).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(minor) = name.strip_prefix("kubectl.1.").and_then(|minor| minor.parse().ok()) {
            versions.push((minor, file));
        }
    }
    versions.sort();
    match versions.as_slice() {
        [] => vec![on_path],
        [(_, only)] => vec![only.clone()],
        [(_, oldest), .., (_, newest)] => vec![oldest.clone(), newest.clone()],
    }
}

/// Runs a test once for each kubectl, each with a cluster of its own.
pub(crate) fn with_each_kubectl(test: impl Fn(&Up, &Kubectl)) {
    for program in kubectls() {
        eprintln!("with {}", program.display());
        let up = Up::start();
        test(&up, &Kubectl::new(&program, &up));
    }
}

fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word = String::new();
    let (mut quoted, mut started) = (false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, started) = (!quoted, true),
            ' ' if !quoted => {
                if started {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            c => {
                word.push(c);
                started = true;
            }
        }
    }
    if started {
        words.push(word);
    }
    words
}
