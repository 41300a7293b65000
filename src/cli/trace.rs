//! `kubarium trace KIND/NAME`: the story of an object, from the request that made it to the kubelet.

use clap::Args;

use super::asked::encoded;
use super::trace_bodies::{KeptExchanges, requests};
use super::trace_source::{TraceSource, look};
use super::trace_wanted::WantedPart;
use super::traced::{self, Traced};
use super::{Failure, block_on, choice, say, terminal, trace_follow};
use flow::{Trace as Story, WantedSteps};

/// Tell the story of an object: a line for each stage, from its request to the running container.
///
/// What happened several times for the same reason is told once, with a count. Behind each line stands the
/// number of the one that led to it.
#[derive(Args)]
pub struct TraceArguments {
    /// Which object: KIND/NAME or KIND NAME, as deployment/web, deploy web or deployments.apps/web. KIND
    /// alone tells of requests that name no object: refused lists, watches and creates that could not be
    /// read.
    /// With --user, --pod or --since it may be left out: then it is about the whole cluster.
    #[arg(num_args = 0.., value_name = "OBJECT")]
    pub object: Vec<String>,
    /// Of several objects that had this name one after the other: the beginning of the uid of one.
    #[arg(long, default_value = "")]
    pub uid: String,
    /// Its namespace; else that of kubectl's context.
    #[arg(short, long, env = "KUBARIUM_NAMESPACE")]
    pub namespace: Option<String>,
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Every step, a line each, instead of stages.
    #[arg(long, conflicts_with = "output")]
    pub full: bool,
    /// All stages, also where they are more than a screen holds, with audit ids and all plugins.
    #[arg(long)]
    pub all: bool,
    /// Go on telling as it happens, until Ctrl-C or the cluster's end.
    #[arg(short, long, conflicts_with = "output")]
    pub follow: bool,
    /// Also what was sent to and fro in each write that is told: headers and bodies, of objects that you may
    /// read, as far as they are kept. With --follow they are kept meanwhile; else --keep-bodies of `kubarium
    /// up` keeps them, an open page, and stepping.
    #[arg(long, conflicts_with = "output")]
    pub bodies: bool,
    #[command(flatten)]
    wanted: WantedPart,
    /// How: a story or lanes (as --full) for people; steps and stages as json or yaml; a mermaid sequence
    /// diagram; spans as otlp, which OpenTelemetry collectors take (JSON); perfetto, which ui.perfetto.dev
    /// opens.
    #[arg(short, long, default_value = "story",
        value_parser = ["story", "lanes", "json", "yaml", "mermaid", "otlp", "perfetto"])]
    pub output: String,
}

impl TraceArguments {
    /// Asks for it and prints it.
    pub fn run(self) -> Result<(), Failure> {
        let wanted = self.wanted.read()?;
        let traced = match self.object.as_slice() {
            [] if self.wanted.is_any() => None,
            words => Some(Traced::parse(words)?),
        };
        let asking = self.asking(traced)?;
        if self.follow {
            return trace_follow::follow(&asking, &wanted, (self.full, self.bodies));
        }
        let mut story = block_on(asking.ask())?;
        if let Some(traced) =
            asking.traced.as_ref().filter(|_| story.steps.is_empty() && story.traffic.is_empty())
        {
            return Err(traced.not_recorded(&story, &asking.namespace, &asking.record.name));
        }
        wanted.of(&mut story);
        self.print(&story, &wanted)?;
        if self.bodies {
            let kept = block_on(KeptExchanges::ask(&asking.context))?;
            kept.of(requests(&story)).iter().for_each(say);
            say(kept.remark());
        }
        Ok(())
    }

    fn asking(&self, traced: Option<Traced>) -> Result<TraceSource, Failure> {
        let (record, context) = choice::reached(self.name.as_deref())?;
        let namespace = self.namespace.clone().unwrap_or_else(|| traced::namespace(&record));
        let path = match &traced {
            None => "/flowz?all=true".to_owned(),
            Some(Traced { kind, name }) => {
                let query =
                    [("resource", kind), ("namespace", &namespace), ("name", name), ("uid", &self.uid)];
                let query = query.map(|(parameter, value)| format!("{parameter}={}", encoded(value)));
                format!("/flowz?{}", query.join("&"))
            }
        };
        Ok(TraceSource { record, namespace, context, path, traced })
    }

    fn print(&self, story: &Story, wanted: &WantedSteps) -> Result<(), Failure> {
        let form = if self.full { "lanes" } else { &self.output };
        let text = match form {
            "lanes" => story.render_wanted(terminal::columns(), wanted),
            "story" => {
                let mut told = story.story();
                told.keep(|stage| wanted.tells(stage));
                told.print(look(self.all))
            }
            form => story.export(form, wanted).map_err(|error| Failure::new("cannot write it", error))?,
        };
        say(text.trim_end());
        Ok(())
    }
}
