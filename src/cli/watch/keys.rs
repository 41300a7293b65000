//! The keyboard: a terminal that gives each key as it is pressed, and is left as it was found.

use std::io::{Read, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::cli::Failure;

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPressed {
    Quit,
    Hold,
    Next,
    Stage,
}

impl KeyPressed {
    fn of(byte: u8) -> Option<KeyPressed> {
        match byte {
            // Ctrl-C and Ctrl-D come as what they are.
            b'q' | b'Q' | 3 | 4 => Some(KeyPressed::Quit),
            b' ' | b'p' => Some(KeyPressed::Hold),
            b'n' | b'\r' => Some(KeyPressed::Next),
            b's' => Some(KeyPressed::Stage),
            _ => None,
        }
    }
}

/// The terminal shows a screen of ours, and gives keys one by one; dropped, it is as before.
pub(super) struct RawTerminal(Termios);

impl RawTerminal {
    pub(super) fn enter() -> Result<RawTerminal, Failure> {
        let failed = |error| Failure::new("cannot take the terminal", error);
        let before = tcgetattr(std::io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        print_now("\x1b[?1049h\x1b[?25l");
        Ok(RawTerminal(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        print_now("\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

fn print_now(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Tells keys as they are pressed. A thread of its own waits for them, since nothing else can; it ends with
/// the process.
pub(super) fn read(to: mpsc::Sender<KeyPressed>) {
    std::thread::spawn(move || {
        for byte in std::io::stdin().lock().bytes() {
            let Ok(byte) = byte else { return };
            let Some(key) = KeyPressed::of(byte) else { continue };
            if to.blocking_send(key).is_err() {
                return;
            }
        }
    });
}
