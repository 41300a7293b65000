//! Scripts that listen: what they say is worked out by playing them until somebody asks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use machine::invocation::Invocation;
use machine::listeners::Listens;
use machine::logs::LogLine;
use machine::requests::{WebAnswer, WebRequest};
use machine::script_listeners::ListeningScript;
use machine::surroundings::Surroundings;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::answered::response;
use super::invocation;
use super::request_log::AskedRun;
use super::services::{PortListener, RunningContainer};
use apimachinery::time::Time;
use apis::views::pod::Container;
use clock::Clock;

/// So long `nc -l` waits for who comes to say something.
const HEARS_FIRST: Duration = Duration::from_millis(100);

/// A script that runs.
struct ScriptRun {
    image: String,
    command: Vec<String>,
    args: Vec<String>,
    around: Arc<Surroundings>,
    started_at: Time,
    run: Arc<AskedRun>,
}

/// What a script that may listen answers at a port.
pub(super) fn listener(
    running: &RunningContainer<'_>,
    around: Arc<Surroundings>,
    port: u16,
    asked: Arc<AskedRun>,
) -> PortListener {
    let run = Arc::new(ScriptRun::of(running.container, around, running.started_at, asked));
    let played = run.clone();
    PortListener {
        container: running.container.name.clone(),
        started_at: running.started_at,
        serve: Arc::new(move |io, from, clock| run.clone().talk(io, port, from, clock).boxed()),
        exit: Arc::default(),
        listens: Some(Arc::new(move |now| played.play(now).is_some_and(|played| played.at(port).is_some()))),
    }
}

impl ScriptRun {
    fn of(
        container: &Container,
        around: Arc<Surroundings>,
        started_at: Time,
        run: Arc<AskedRun>,
    ) -> ScriptRun {
        let Invocation { image, command, args, .. } = invocation::of(container);
        let (image, command, args) = (image.to_owned(), command.to_vec(), args.to_vec());
        ScriptRun { image, command, args, around, started_at, run }
    }

    fn play(&self, now: Time) -> Option<ListeningScript> {
        let ran = now.signed_duration_since(self.started_at).to_std().unwrap_or_default();
        let invocation = Invocation::new(&self.image, &self.command, &self.args);
        ListeningScript::play(&invocation, &self.around, ran)
    }

    async fn talk(self: Arc<ScriptRun>, mut io: DuplexStream, port: u16, from: String, clock: Clock) {
        let played = self.play(clock.now());
        match played.as_ref().and_then(|played| played.at(port)) {
            None => {}
            Some(Listens::Says(said)) => {
                // A client of HTTP wants to ask first; whoever says nothing is not waited for.
                let mut asked = [0; 4096];
                let _ = clock.timeout(HEARS_FIRST, io.read(&mut asked)).await;
                // Whoever hangs up has heard enough.
                let _ = io.write_all(said).await.and(io.shutdown().await);
            }
            Some(Listens::Files(_) | Listens::Python(_)) => {
                let answer = |request: Request<Bytes>| {
                    let answered = self.page(&request, port, &from, clock.now());
                    std::future::ready(response(answered))
                };
                network::http_server::serve(io, answer).await;
            }
        }
    }

    fn page(&self, request: &Request<Bytes>, port: u16, from: &str, now: Time) -> WebAnswer {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let method = request.method().as_str();
        let asked = WebRequest { method, target, from, uptime: Duration::ZERO, ..WebRequest::default() };
        let played = self.play(now);
        match played.as_ref().and_then(|played| Some((played, played.at(port)?))) {
            Some((played, Listens::Files(folder))) => played.answer(folder, &asked, &self.around),
            Some((played, Listens::Python(folder))) => {
                let (answered, lines) = played.python(folder, &asked, &self.around, now);
                lines.into_iter().for_each(|text| self.run.log.push(LogLine { at: now, text }));
                answered
            }
            _ => WebAnswer { code: 503, ..WebAnswer::default() },
        }
    }
}
