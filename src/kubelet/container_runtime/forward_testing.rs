//! The one connection of agnhost's `port-forward-tester`.

use std::io;
use std::time::Duration;

use machine::agnhost::forward_tester::{Chunks, ForwardTester, HalfClosing};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use clock::Clock;

/// Between its last word and its end, so that whoever listens hears all.
const FAREWELL: Duration = Duration::from_millis(500);
/// So much of a chunk is made at once.
const PIECE: [u8; 4096] = [b'x'; 4096];

/// Plays it; the code with which it ends. `say` writes its log.
pub(super) async fn converse(
    tester: &ForwardTester,
    mut io: DuplexStream,
    clock: &Clock,
    say: &(dyn Fn(String) + Sync),
) -> i32 {
    if let Some(how) = &tester.closes {
        close_and_stay(how, io, clock).await;
        say("output:".into());
        std::iter::once("").chain(how.output.lines()).for_each(|line| say(line.to_owned()));
        return 0;
    }
    say("Accepted client connection".into());
    if !tester.expected.is_empty() {
        if let Err((code, why)) = hear(&tester.expected, &mut io).await {
            say(why);
            return code;
        }
        say("Received expected client data".into());
    }
    let chunks = match &tester.says {
        Ok(chunks) => chunks,
        Err(why) => {
            say(why.clone());
            return 1;
        }
    };
    for at in 0..chunks.count {
        if let Err(why) = say_chunk(chunks, &mut io).await {
            say(format!(
                "Expected to write {} bytes from client, but wrote less instead. err={why}",
                chunks.bytes
            ));
            return 4;
        }
        if at + 1 < chunks.count {
            clock.sleep(chunks.interval).await;
        }
    }
    say("Shutting down connection".into());
    let _ = io.shutdown().await;
    clock.sleep(FAREWELL).await;
    say("Done".into());
    0
}

/// It has nothing to say, and hears what the other side says for a while.
pub(super) async fn close_and_stay(how: &HalfClosing, mut io: DuplexStream, clock: &Clock) {
    let _ = io.shutdown().await;
    clock.sleep(how.stays).await;
}

/// What has to be said first.
async fn hear(expected: &[u8], io: &mut DuplexStream) -> Result<(), (i32, String)> {
    let mut heard = vec![0; expected.len()];
    let mut count = 0;
    while count < heard.len() {
        match io.read(&mut heard[count..]).await {
            Ok(more @ 1..) => count += more,
            _ => {
                let length = expected.len();
                return Err((
                    2,
                    format!("Expected to read {length} bytes from client, but got {count} instead. err=EOF"),
                ));
            }
        }
    }
    if heard == expected {
        return Ok(());
    }
    let (expected, heard) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(&heard));
    Err((3, format!("Expect to read {expected:?}, but got {heard:?}. err=<nil>")))
}

async fn say_chunk(chunks: &Chunks, io: &mut DuplexStream) -> io::Result<()> {
    let mut left = chunks.bytes;
    while left > 0 {
        let length = left.min(PIECE.len());
        io.write_all(&PIECE[..length]).await?;
        left -= length;
    }
    io.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use apimachinery::time::Time;
    use sync::Mutex;

    /// What it says on the connection and in its log to somebody who says that, and how it ends.
    async fn played(tester: &ForwardTester, said: &[u8]) -> (String, Vec<String>, i32) {
        let clock = Clock::stepped(Time::UNIX_EPOCH);
        let (mut client, server) = network::connection();
        let log = Mutex::new(vec![]);
        let say = |line: String| log.lock().push(line);
        client.write_all(said).await.unwrap();
        client.shutdown().await.unwrap();
        let mut playing = Box::pin(converse(tester, server, &clock, &say));
        let code = loop {
            tokio::select! {
                biased;
                code = &mut playing => break code,
                () = tokio::task::yield_now() => {
                    clock.next_wake().into_iter().for_each(|wake| clock.advance(wake));
                }
            }
        };
        drop(playing);
        let mut heard = String::new();
        client.read_to_string(&mut heard).await.unwrap();
        let log = log.lock().clone();
        (heard, log, code)
    }

    #[tokio::test]
    async fn it_hears_and_says_what_it_is_told_and_ends() {
        let chunks = Chunks { count: 2, bytes: 3, interval: Duration::from_secs(5) };
        let tester = ForwardTester { expected: b"abc".to_vec(), says: Ok(chunks), closes: None };
        let log = ["Accepted client connection", "Received expected client data"];
        let all = [&log[..], &["Shutting down connection", "Done"]].concat();
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(played(&tester, b"abc").await, ("xxxxxx".into(), lines(&all), 0));
        let (_, log, code) = played(&tester, b"ab").await;
        assert_eq!(
            (log[1].as_str(), code),
            ("Expected to read 3 bytes from client, but got 2 instead. err=EOF", 2)
        );
        let (_, log, code) = played(&tester, b"abd").await;
        assert_eq!((log[1].as_str(), code), ("Expect to read \"abc\", but got \"abd\". err=<nil>", 3));
        let wrong = ForwardTester { says: Err("Error parsing".into()), expected: vec![], closes: None };
        assert_eq!(
            played(&wrong, b"").await,
            (String::new(), lines(&["Accepted client connection", "Error parsing"]), 1)
        );
    }
}
