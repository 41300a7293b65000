//! `attach`: to what the process of a container says from then on, and what it hears
//! (`registry/core/pod/rest/subresources.go`, and what a kubelet makes of it).

use futures::FutureExt;
use hyper::upgrade::OnUpgrade;
use serde_json::Value;
use tokio::sync::mpsc;

use super::asked_streams::AskedStreams;
use super::command_streams::{CLOSED, CommandStreams, ERRORS, OUT, Outcomes, window_of};
use super::log;
use super::pass_on::{container_target, pass_on};
use super::streams::{Channels, Message, RESIZE, UpgradeTo};
use crate::endpoints::handlers::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::kubelet_client::{AttachRequest, AttachedStreams};
use apimachinery::status::Status;
use apis::tree::text;

/// Goes on over a websocket or SPDY.
pub(super) async fn attach(
    scope: &Scope,
    pod: &Value,
    upgrade: (OnUpgrade, UpgradeTo),
) -> Result<Answer, Status> {
    let wanted = CommandStreams::of(scope);
    let container = log::container(pod, scope.name(), scope.query.text("container"))?;
    let (node, asked) = (text(pod, "spec.nodeName"), AskedStreams::of(scope));
    if asked.kubelets.is_elsewhere(node) {
        let target = container_target("attach", [scope.namespace(), scope.name(), &container], &asked);
        return pass_on(&asked, Some(upgrade.0), node, &target).await;
    }
    let request = AttachRequest {
        node: node.into(),
        namespace: scope.namespace().into(),
        pod: scope.name().into(),
        container,
        reads: wanted.reads,
    };
    attach_over(&asked, request, wanted, upgrade).await
}

/// Goes on with a process that is known.
pub(super) async fn attach_over(
    asked: &AskedStreams<'_>,
    request: AttachRequest,
    wanted: CommandStreams,
    upgrade: (OnUpgrade, UpgradeTo),
) -> Result<Answer, Status> {
    if !wanted.reads && !wanted.sends.0 && !wanted.sends.1 {
        return Err(Status::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
    }
    let attached = asked.kubelets.attach(request).await?;
    let talk = move |mut io: Box<dyn Channels>, outcomes| {
        // A client that hangs up ends it.
        async move { drop(converse(&mut *io, wanted, attached, outcomes).await) }.boxed()
    };
    wanted.accept(asked, upgrade, Box::new(talk))
}

async fn converse(
    io: &mut dyn Channels,
    wanted: CommandStreams,
    attached: AttachedStreams,
    outcomes: Outcomes,
) -> std::io::Result<()> {
    wanted.begin(io).await?;
    if pass(io, wanted, attached, None).await? {
        outcomes.tell(io, "attaching to", Ok(0)).await?;
        io.close().await?;
    }
    Ok(())
}

/// Passes on what both say, until the process says no more. Whether the client is still there. What it has
/// said first is `unheard`: until the process has heard what was said no more is read.
pub(super) async fn pass(
    io: &mut dyn Channels,
    wanted: CommandStreams,
    attached: AttachedStreams,
    mut unheard: Option<Vec<u8>>,
) -> std::io::Result<bool> {
    let AttachedStreams { says, resize, mut said } = attached;
    let mut says = Some(says);
    loop {
        tokio::select! {
            is_heard = hear(says.as_ref(), unheard.as_ref()), if unheard.is_some() => {
                unheard = None;
                says.take_if(|_| !is_heard);
            }
            message = io.next(), if unheard.is_none() => match message? {
                Message::Data(0, bytes) => unheard = Some(bytes).filter(|_| wanted.reads && says.is_some()),
                Message::Data(RESIZE, bytes) => window_of(&bytes).into_iter().for_each(&resize),
                Message::Data(CLOSED, channel) if channel.first().is_none_or(|channel| *channel == 0) => {
                    says = says.filter(|_| !wanted.reads);
                }
                Message::Data(..) => {}
                Message::Ping(payload) => io.pong(&payload).await?,
                Message::Close => return Ok(false),
            },
            piece = said.recv() => match piece {
                None => return Ok(true),
                Some((false, bytes)) if wanted.sends.0 => io.send(OUT, &bytes).await?,
                Some((true, bytes)) if wanted.sends.1 => io.send(ERRORS, &bytes).await?,
                Some(_) => {}
            },
        }
    }
}

/// Whether the process has heard it.
async fn hear(says: Option<&mpsc::Sender<Vec<u8>>>, bytes: Option<&Vec<u8>>) -> bool {
    let (Some(says), Some(bytes)) = (says, bytes) else { return false };
    let Ok(place) = says.reserve().await else { return false };
    place.send(bytes.clone());
    true
}
