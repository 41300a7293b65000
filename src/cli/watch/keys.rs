//! The keyboard: what a key means to the view, and who waits for the next one.

use std::io;

use ratatui_crossterm::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPressed {
    Quit,
    Hold,
    Next,
    Stage,
}

/// What a terminal tells by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FromTerminal {
    Pressed(KeyPressed),
    /// The screen has another size, and shows no more what was drawn.
    Resized,
    /// It tells nothing any more.
    Gone(String),
}

impl FromTerminal {
    fn of(event: io::Result<Event>) -> Option<FromTerminal> {
        match event {
            Ok(Event::Key(key)) => KeyPressed::of(key).map(FromTerminal::Pressed),
            Ok(Event::Resize(..)) => Some(FromTerminal::Resized),
            Ok(_) => None,
            Err(error) => Some(FromTerminal::Gone(error.to_string())),
        }
    }
}

impl KeyPressed {
    fn of(key: KeyEvent) -> Option<KeyPressed> {
        let is_alone = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        match key.code {
            // Ctrl-C and Ctrl-D come as what they are.
            KeyCode::Char('c' | 'd') if key.modifiers == KeyModifiers::CONTROL => Some(KeyPressed::Quit),
            _ if !is_alone => None,
            KeyCode::Char('q' | 'Q') => Some(KeyPressed::Quit),
            KeyCode::Char(' ' | 'p') => Some(KeyPressed::Hold),
            KeyCode::Char('n') | KeyCode::Enter => Some(KeyPressed::Next),
            KeyCode::Char('s') => Some(KeyPressed::Stage),
            _ => None,
        }
    }
}

/// Tells what the terminal tells, until `to` wants no more. A thread of its own waits for it, since nothing
/// else can; it ends with the process.
pub(super) fn read(to: impl Fn(FromTerminal) -> bool + Send + 'static) {
    std::thread::spawn(move || {
        loop {
            let told = FromTerminal::of(event::read());
            let is_last = matches!(told, Some(FromTerminal::Gone(_)));
            if told.is_some_and(|told| !to(told)) || is_last {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_footer_says_and_others_nothing() {
        let of = |code, modifiers| KeyPressed::of(KeyEvent::new(code, modifiers));
        let plain = |letter| of(KeyCode::Char(letter), KeyModifiers::NONE);
        assert_eq!((plain('q'), plain(' ')), (Some(KeyPressed::Quit), Some(KeyPressed::Hold)));
        assert_eq!((plain('p'), plain('n')), (Some(KeyPressed::Hold), Some(KeyPressed::Next)));
        assert_eq!((plain('s'), plain('x')), (Some(KeyPressed::Stage), None));
        assert_eq!(of(KeyCode::Enter, KeyModifiers::NONE), Some(KeyPressed::Next));
        assert_eq!(of(KeyCode::Char('Q'), KeyModifiers::SHIFT), Some(KeyPressed::Quit));
        for letter in ['c', 'd'] {
            assert_eq!(of(KeyCode::Char(letter), KeyModifiers::CONTROL), Some(KeyPressed::Quit));
            assert_eq!(plain(letter), None);
        }
        assert_eq!(of(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
        assert_eq!(of(KeyCode::Char('q'), KeyModifiers::ALT), None);
    }

    #[test]
    fn a_screen_of_another_size_and_a_lost_one_are_told() {
        assert_eq!(FromTerminal::of(Ok(Event::Resize(10, 4))), Some(FromTerminal::Resized));
        assert_eq!(FromTerminal::of(Ok(Event::FocusLost)), None);
        let gone = FromTerminal::of(Err(io::Error::other("no terminal")));
        assert_eq!(gone, Some(FromTerminal::Gone("no terminal".into())));
    }
}
