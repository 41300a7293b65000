//! `kubarium trace --bodies`: what was sent to and fro in the requests of a story.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use super::Failure;
use super::connection::Context;
use flow::{BodyText, ExchangeText, MessageText, Step, StepId, Trace};

/// What a cluster has kept, as far as we may read it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptExchanges {
    exchanges: Vec<ExchangeText>,
    is_kept: bool,
    withheld: usize,
    max_exchanges: usize,
}

impl KeptExchanges {
    /// All that there is.
    pub(super) async fn ask(context: &Context) -> Result<KeptExchanges, Failure> {
        let answer = context.get(&format!("{}/exchanges", handles::ROOT)).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))
    }

    /// Those of these requests that were answered, in their order.
    pub(super) fn of(&self, requests: impl Iterator<Item = StepId>) -> Vec<String> {
        let kept = requests.filter_map(|id| self.exchanges.iter().find(|kept| kept.step == id));
        kept.filter_map(|kept| kept.response.as_ref().map(|response| told(kept, response))).collect()
    }

    /// Whether nothing more is to be told of a request: it is not kept, or its answer is there.
    pub(super) fn is_whole(&self, request: StepId) -> bool {
        let kept = self.exchanges.iter().find(|kept| kept.step == request);
        kept.is_none_or(|kept| kept.response.is_some())
    }

    /// What is to be known of those that do not stand here.
    pub(super) fn remark(&self) -> String {
        let most = self.max_exchanges;
        let kept = if self.is_kept {
            format!("kept are those of the last {most} writes of people, and as many of components")
        } else {
            "headers and bodies of new writes are not kept now; they are with `kubarium up --keep-bodies`, while \
             the page (`kubarium ui`) is open, while `kubarium trace --bodies --follow` runs, and while the cluster \
             is stepped"
                .to_owned()
        };
        match self.withheld {
            0 => kept,
            some => format!("{kept}; {some} more are about objects that you may not read"),
        }
    }
}

/// The requests of a trace.
pub(super) fn requests(trace: &Trace) -> impl Iterator<Item = StepId> {
    trace.steps.iter().filter(|one| matches!(one.step, Step::RequestReceived { .. })).map(|one| one.id)
}

fn told(exchange: &ExchangeText, response: &MessageText) -> String {
    let mut text = format!("\n{} {}\n", exchange.step, exchange.line);
    write_message(&mut text, '>', &exchange.request);
    // A string takes whatever is written.
    let _ = writeln!(text, "< {}", response.code);
    write_message(&mut text, '<', response);
    text.trim_end().to_owned()
}

fn write_message(text: &mut String, way: char, message: &MessageText) {
    for (name, value) in &message.headers {
        let _ = writeln!(text, "{way} {name}: {}", value.as_deref().unwrap_or("(not kept)"));
    }
    let body = body(&message.body);
    if !body.is_empty() {
        let _ = writeln!(text, "{way}");
    }
    for line in body.lines() {
        let _ = writeln!(text, "{way} {line}");
    }
}

/// What is JSON is laid out.
fn body(body: &BodyText) -> String {
    if body.text.is_empty() && body.bytes > 0 {
        return format!("({} bytes that are no text, or more of it than is kept)", body.bytes);
    }
    if body.is_cut {
        return format!("{}... ({} bytes in all)", body.text, body.bytes);
    }
    let laid_out = |tree: Value| serde_json::to_string_pretty(&tree).unwrap_or_default();
    serde_json::from_str(&body.text).map_or_else(|_| body.text.clone(), laid_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_of(text: &str, bytes: u64, is_cut: bool) -> BodyText {
        BodyText { text: text.into(), bytes, is_cut }
    }

    #[test]
    fn a_request_and_its_answer_are_laid_out() {
        let headers = vec![("accept".into(), Some("*/*".into())), ("authorization".into(), None)];
        let request = MessageText { code: 0, headers, body: body_of("{\"a\":1}", 7, false) };
        let response = MessageText { code: 201, headers: vec![], body: body_of("", 9, false) };
        let exchange = ExchangeText { step: StepId(7), line: "POST /a".into(), request, response: None };
        let lines = [
            "",
            "#7 POST /a",
            "> accept: */*",
            "> authorization: (not kept)",
            ">",
            "> {",
            ">   \"a\": 1",
            "> }",
            "< 201",
            "<",
            "< (9 bytes that are no text, or more of it than is kept)",
        ];
        assert_eq!(told(&exchange, &response), lines.join("\n"));
        assert_eq!(body(&body_of("{\"a", 900, true)), "{\"a... (900 bytes in all)");
    }

    #[test]
    fn it_is_said_what_is_not_there() {
        let kept =
            |is_kept, withheld| KeptExchanges { exchanges: vec![], is_kept, withheld, max_exchanges: 128 };
        assert!(kept(false, 0).remark().contains("--keep-bodies"));
        let said = kept(true, 3).remark();
        assert!(
            said.contains("the last 128 writes")
                && said.ends_with("3 more are about objects that you may not read")
        );
    }
}
