//! The terminal while the view has it: each key comes as it is pressed, the screen is one of its own, and
//! both are left as they were found, however the view ends.

use std::io::{BufWriter, Stdout, stdout};
use std::panic;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::terminal::{Frame, Terminal, TerminalOptions, Viewport};
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, is_raw_mode_enabled,
};

use crate::cli::style::Style;
use crate::cli::{Failure, terminal};

/// The size of a screen that does not say it.
const UNKNOWN: (u16, u16) = (80, 24);

/// A terminal that is the view's; dropped, it is as before.
pub(super) struct TakenTerminal {
    screen: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    area: Rect,
    is_coloured: bool,
    // The last field: it is given back behind everything that is written to it.
    _given_back: GivenBack,
}

struct GivenBack;

impl Drop for GivenBack {
    fn drop(&mut self) {
        give_back();
    }
}

impl TakenTerminal {
    pub(super) fn enter() -> Result<TakenTerminal, Failure> {
        let failed = |error| Failure::new("cannot take the terminal", error);
        enable_raw_mode().map_err(failed)?;
        let _given_back = GivenBack;
        give_back_before_a_panic_is_told();
        execute!(stdout(), EnterAlternateScreen, Hide).map_err(failed)?;
        let area = area_of_screen();
        // Of a size that is told here: some terminals say that they have no rows and no columns.
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let backend = CrosstermBackend::new(BufWriter::new(stdout()));
        let screen = Terminal::with_options(backend, options).map_err(failed)?;
        let is_coloured = Style::of_stdout().is_coloured();
        Ok(TakenTerminal { screen, area, is_coloured, _given_back })
    }

    /// Draws all of the screen; what stands there already is not written again.
    pub(super) fn draw(&mut self, show: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        let failed = |error| Failure::new("cannot draw on the terminal", error);
        let area = area_of_screen();
        if area != self.area {
            self.screen.resize(area).map_err(failed)?;
            self.area = area;
        }
        let shown = |frame: &mut Frame<'_>| {
            show(frame);
            if !self.is_coloured {
                take_colours(frame.buffer_mut());
            }
        };
        self.screen.draw(shown).map_err(failed)?;
        Ok(())
    }
}

/// Where there are to be none, crossterm would write sequences for them that take away what is bold, too.
fn take_colours(screen: &mut Buffer) {
    for cell in &mut screen.content {
        cell.set_fg(Color::Reset);
        cell.set_bg(Color::Reset);
    }
}

fn area_of_screen() -> Rect {
    let (columns, rows) = terminal::size_of_screen().unwrap_or(UNKNOWN);
    Rect::new(0, 0, columns, rows)
}

/// Once: a screen that is left twice has its cursor elsewhere.
fn give_back() {
    if is_raw_mode_enabled().unwrap_or(true) {
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// What a panic says is lost with the screen on which it is said.
fn give_back_before_a_panic_is_told() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        give_back();
        tell(panicked);
    }));
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use ratatui_core::style::{Modifier, Style};

    use super::*;

    /// Set for the process that has a terminal and panics on it.
    const PANICS: &str = "KUBARIUM_TEST_PANICS_IN_A_VIEW";

    #[test]
    fn a_panic_is_told_on_the_screen_as_it_was_before() {
        if std::env::var_os(PANICS).is_some() {
            let _taken = TakenTerminal::enter().map_err(|failure| failure.to_string()).unwrap();
            panic!("what went wrong");
        }
        let this = std::env::current_exe().unwrap();
        let this = format!(
            "'{}' --exact {}",
            this.display(),
            "cli::watch::taken::tests::a_panic_is_told_on_the_screen_as_it_was_before"
        );
        let line = format!("stty -g; {PANICS}=1 {this} --nocapture; stty -g");
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh").stdin(Stdio::null());
        let output = script.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("no {what:?}: {said:?}"));
        assert!(at("\x1b[?1049h") < at("\x1b[?1049l"), "{said:?}");
        assert!(at("\x1b[?1049l") < at("what went wrong"), "{said:?}");
        let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
        assert!(lines[0].contains(':') && lines.first() == lines.last(), "{said:?}");
    }

    #[test]
    fn a_screen_without_colours_keeps_what_is_bold() {
        let mut screen = Buffer::empty(Rect::new(0, 0, 4, 1));
        screen.set_string(
            0,
            0,
            "held",
            Style::new().fg(Color::Red).bg(Color::Blue).add_modifier(Modifier::BOLD),
        );
        take_colours(&mut screen);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut wanted = Buffer::empty(Rect::new(0, 0, 4, 1));
        wanted.set_string(0, 0, "held", bold);
        assert_eq!(screen, wanted);
    }
}
