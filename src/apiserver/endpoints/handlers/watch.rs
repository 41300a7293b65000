//! watch: what happens to objects, as it happens (`handlers/watch.go`).
//! Next: src/client_go/watch.rs

use super::request_scope::Scope;
use crate::endpoints::response::answer::Answer;
use crate::endpoints::response::negotiation::not_a_stream;
use crate::endpoints::response::websocket;
use crate::metrics::WatchCounts;
use apimachinery::accept::MediaType;
use apimachinery::fields::FieldSelector;
use apimachinery::status::Status;

/// Upstream's `--min-request-timeout`: a client's watch without a timeout ends after this to twice this.
const MIN_TIMEOUT_SECONDS: usize = 1800;

/// Begins to watch what the query selects; a name in the path selects one object.
pub(crate) async fn watch(scope: &mut Scope) -> Result<Answer, Status> {
    if scope.output.media_type == MediaType::Yaml {
        return Err(not_a_stream());
    }
    let mut options = scope.query.list_options(&scope.kind)?;
    options.predicate.only_initialized = scope.sees_only_initialized();
    if scope.ctx.info.depth == 2 && !scope.name().is_empty() {
        options.predicate.fields = FieldSelector::equal("metadata.name", scope.name());
    }
    if options.timeout_seconds.is_none() && !scope.ctx.wants_objects {
        let seconds = MIN_TIMEOUT_SECONDS + scope.server.entropy.below(MIN_TIMEOUT_SECONDS);
        options.timeout_seconds = Some(seconds as u64);
    }
    options.held = scope.ctx.held.take();
    options.cut = scope.ctx.cut.take();
    let events = scope.server.registry.watch(&scope.kind, scope.namespace(), &options).await?;
    let events = match scope.ctx.disturbance.as_ref().and_then(|disturbance| disturbance.watch.as_ref()) {
        Some(stage) => stage(events),
        None => events,
    };
    if websocket::is_wanted(&scope.headers)
        && let Some(upgrade) = scope.upgrade.take()
    {
        let (printer, media_type) = (scope.printer()?, scope.output.media_type);
        let unread = scope.unread.take().unwrap_or_default();
        let counts = WatchCounts::begin(&scope.server.metrics, &scope.ctx);
        let watch = websocket::WebSocketWatch { printer, media_type, events, unread, counts };
        return Ok(Answer::Raw(websocket::watch_response(&scope.headers, upgrade, watch)));
    }
    Ok(Answer::Watch(events))
}
