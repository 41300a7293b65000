//! `kubarium watch`: what it shows in a terminal, what its keys do, how it gives the terminal back, and what it
//! says where there is none.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::in_a_terminal;
use super::screen::Screen;
use crate::support::{Up, eventually, texts};

/// What a program writes that takes a terminal's screen, and what when it gives it back.
const TAKEN: &str = "\u{1b}[?1049h";
const GIVEN_BACK: &str = "\u{1b}[?1049l";

/// What begins the name of the first lane, and what begins a heading.
const CYAN: &str = "\u{1b}[38;5;6;49m";
const REVERSED: &str = "\u{1b}[7m";

/// A view of a cluster in a terminal of its own.
struct View<'a> {
    child: Child,
    written: PathBuf,
    up: &'a Up,
}

impl View<'_> {
    fn open<'a>(up: &'a Up, name: &str) -> View<'a> {
        View::open_with(up, name, "")
    }

    fn open_with<'a>(up: &'a Up, name: &str, no_color: &str) -> View<'a> {
        let written = up.folder().join(name);
        let kubarium = env!("CARGO_BIN_EXE_kubarium");
        let tell = format!("tty > {name}.tty; echo $$ > {name}.pid; exec {kubarium} watch");
        let child = in_a_terminal(up.folder(), &tell, no_color)
            .current_dir(up.folder())
            .stdin(Stdio::piped())
            .stdout(fs::File::create(&written).unwrap())
            .spawn()
            .unwrap();
        let view = View { child, written, up };
        view.shows("kubarium watch");
        view
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.written).unwrap()).into_owned()
    }

    fn has_shown(&self, part: &str) -> bool {
        Screen::after(&self.written()).text().contains(part)
    }

    fn shows(&self, part: &str) {
        eventually(part, || self.has_shown(part).then_some(()));
    }

    fn types(&mut self, keys: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// What the shell said of it: its `pid` or its `tty`.
    fn told(&self, what: &str) -> String {
        let text = fs::read_to_string(self.written.with_extension(what)).unwrap();
        text.trim().to_owned()
    }

    /// How it ended, and what was said behind its screen.
    fn ended(mut self) -> (ExitStatus, String) {
        let status = eventually("the view to end", || self.child.try_wait().unwrap());
        let written = self.written();
        assert_eq!(written.matches(TAKEN).count(), 1);
        let (_, behind) = written.split_once(GIVEN_BACK).expect("the terminal is left as it was");
        assert!(written.rfind("\u{1b}[?25h") > written.rfind("\u{1b}[?25l"), "the cursor is seen again");
        (status, behind.to_owned())
    }
}

#[test]
fn it_draws_the_lanes_and_its_keys_step_the_cluster() {
    let up = Up::start();
    let (_, refused) = texts(&up.kubarium(&["watch"]));
    assert!(refused.contains("kubarium trace --since 1m --follow"), "{refused}");
    let mut view = View::open(&up, "keys");
    view.shows("controllers");
    // A screen shows what happened last: where much happens between two frames, only the end of it.
    let mut count = 0;
    eventually("a screen with what was created", || {
        count += 1;
        let created = up.kubectl(&["create", "configmap", &format!("watched-{count}")]);
        assert!(created.status.success());
        view.has_shown("created configmaps default/watched-").then_some(())
    });
    view.types(b" ");
    view.shows("held between two steps");
    view.types(b" ");
    eventually("the cluster to go on", || {
        let (shown, _) = texts(&view.up.kubarium(&["step", "show"]));
        shown.contains("goes on by itself").then_some(())
    });
    view.shows("   running");
    view.types(b"q");
    assert!(view.written().contains(CYAN));
    let (status, behind) = view.ended();
    assert!(status.success() && behind.trim().is_empty(), "{status} {behind}");
}

#[test]
fn who_wants_no_colour_sees_headings_all_the_same() {
    let up = Up::start();
    let mut view = View::open_with(&up, "plain", "1");
    view.shows("kubelets");
    view.types(b"q");
    let written = view.written();
    assert!(written.contains(REVERSED) && !written.contains(CYAN), "{written:?}");
    // An empty one of these would take the marks of a heading away, too.
    let (before, _) = written.split_once("queue").unwrap();
    assert!(!before.contains("\u{1b}[;m"), "{written:?}");
    assert!(view.ended().0.success());
}

#[test]
fn it_fits_a_screen_whose_size_changes_and_gives_it_back_however_it_ends() {
    let up = Up::start();
    let view = View::open(&up, "killed");
    view.shows("q quit");
    let resized = Command::new("stty").args(["-F", &view.told("tty"), "rows", "12", "cols", "60"]).status();
    assert!(resized.unwrap().success());
    eventually("the footer in the last row of the smaller screen", || {
        let screen = Screen::after(&view.written());
        (screen.row(11).contains("q quit") && screen.row(23).is_empty()).then_some(())
    });
    let ended = Command::new("kill").args(["-TERM", &view.told("pid")]).status();
    assert!(ended.unwrap().success());
    let (status, behind) = view.ended();
    assert!(status.success() && behind.trim().is_empty(), "{status} {behind}");
}

#[test]
fn that_its_cluster_has_ended_is_said_behind_the_screen() {
    for signal in ["-TERM", "-KILL"] {
        let up = Up::start();
        let view = View::open(&up, "left");
        eventually("the view to follow the cluster", || (!view.has_shown("   step 0   ")).then_some(()));
        let server = server(&up);
        up.signal(signal);
        let (status, behind) = view.ended();
        assert_eq!(status.code(), Some(1), "{signal}: {behind}");
        let said: Vec<&str> = behind.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let [line] = said[..] else { panic!("{signal}: {behind}") };
        assert!(line.starts_with("error: the cluster "), "{line}");
        assert!(line.ends_with(&format!(" at {server} has ended: it tells no more")), "{line}");
    }
}

#[test]
fn that_its_cluster_does_not_answer_is_shown_until_it_does() {
    let up = Up::start();
    let mut view = View::open(&up, "silent");
    view.shows("   running");
    up.signal("-STOP");
    view.shows("no answer for 5 s");
    up.signal("-CONT");
    view.shows("   running");
    up.signal("-STOP");
    view.types(b" ");
    view.types(b"q");
    let (status, behind) = view.ended();
    up.signal("-CONT");
    assert!(status.success() && behind.trim().is_empty(), "{status} {behind}");
}

/// Where its apiserver listens.
fn server(up: &Up) -> String {
    let kubeconfig = fs::read_to_string(up.folder().join("kubeconfig")).unwrap();
    let (_, server) = kubeconfig.split_once("server: ").unwrap();
    server.lines().next().unwrap().to_owned()
}

#[test]
fn why_it_cannot_look_is_said_behind_the_screen() {
    let up = Up::start();
    let kubeconfig = fs::read_to_string(up.folder().join("kubeconfig")).unwrap();
    let server = server(&up);
    // A port that nobody can listen at: it is the system's word for any.
    up.file("kubeconfig", &kubeconfig.replace(&server, "https://127.0.0.1:0"));
    let (status, behind) = View::open(&up, "refused").ended();
    assert!(!status.success(), "{status}");
    assert!(behind.starts_with("error: cannot ask https://127.0.0.1:0: "), "{behind}");
}
