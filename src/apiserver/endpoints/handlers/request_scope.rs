//! `Scope`: all that a verb needs to know of its request (`handlers.RequestScope`).

use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use super::form::BodyKind;
use crate::admission::{Attributes, Operation};
use crate::endpoints::EndpointContext;
use crate::endpoints::query::{Query, WriteOptions};
use crate::endpoints::response::negotiation::{Output, Transform};
use crate::endpoints::response::printer::Printer;
use crate::endpoints::response::table::{IncludeObject, include_object};
use crate::endpoints::response::unread_watches::UnreadWatches;
use crate::registry::Part;
use crate::request::RequestContext;
use apimachinery::fingerprint::Fingerprint;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;
use apis::kind::{Kind, Subresource};
use apis::scale::scale_of;
use flow::DecodedObject;

/// One request to a resource.
pub(crate) struct Scope {
    /// What the endpoints work with.
    pub server: Arc<EndpointContext>,
    /// Who asks and for what.
    pub ctx: RequestContext,
    /// The kind of the resource.
    pub kind: Arc<Kind>,
    /// What hangs below the object's path, if that is asked for.
    pub subresource: Option<Subresource>,
    /// The parameters.
    pub query: Query,
    /// As it was sent; that of a HEAD is GET.
    pub method: Method,
    /// The path and the parameters, as they were sent.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The form of the answer.
    pub output: Output,
    /// The connection itself, where it may become something else than HTTP.
    pub upgrade: Option<OnUpgrade>,
    /// Counts what its client does not take, where that is a watch over an upgraded connection.
    pub unread: Option<UnreadWatches>,
}

impl Scope {
    /// Empty for cluster-scoped kinds and for all namespaces. (The path of a namespace names itself.)
    pub(crate) fn namespace(&self) -> &str {
        if self.kind.namespaced { &self.ctx.info.namespace } else { "" }
    }

    /// The name in the path.
    pub(crate) fn name(&self) -> &str {
        &self.ctx.info.name
    }

    /// Reads and checks the options of a write, and keeps what the registry must know.
    pub(crate) fn write_options(&mut self, options_kind: &str) -> Result<WriteOptions, Status> {
        let options = self.query.write_options(options_kind)?;
        self.ctx.dry_run = options.dry_run;
        self.ctx.field_manager = options.field_manager.clone();
        self.ctx.field_validation = self.query.text("fieldValidation").unwrap_or_default().to_owned();
        Ok(options)
    }

    /// Tells what became of a body of so many bytes; `sent` is the object before it had its defaults.
    pub(crate) fn tell_decoded(&self, bytes: usize, sent: Option<&Fingerprint>, object: &Value) {
        let kind = &self.kind;
        let version = &kind.group_version;
        self.ctx.tell_decoded(|| DecodedObject {
            bytes: bytes as u64,
            read_as: format!("{version} {}", kind.kind).into(),
            resource: format!("{version} {}", kind.plural).into(),
            stored_as: kind.storage_kind().group_version.to_string().into(),
            defaulted: sent.into_iter().flat_map(|sent| sent.changes(object)).map(Arc::from).collect(),
        });
    }

    /// An object as it was sent, where it is told what becomes of it.
    pub(crate) fn as_sent(&self, object: &Value) -> Option<Fingerprint> {
        self.ctx.is_persons().then(|| Fingerprint::of(object))
    }

    /// For admission.
    pub(crate) fn attributes<'a>(&'a self, operation: Operation, name: &'a str) -> Attributes<'a> {
        Attributes {
            ctx: &self.ctx,
            operation,
            kind: &self.kind,
            subresource: self.subresource.map_or("", Subresource::name),
            namespace: self.namespace(),
            name,
            reinvocation: None,
        }
    }

    /// The part of the object that an update of this path is about.
    pub(crate) fn part(&self) -> Part {
        match self.subresource {
            Some(Subresource::Status) => Part::Status,
            Some(Subresource::Finalize) => Part::Finalize,
            Some(Subresource::EphemeralContainers) => Part::EphemeralContainers,
            Some(Subresource::Resize) => Part::Resize,
            Some(Subresource::Approval) => Part::Approval,
            _ => Part::Main,
        }
    }

    /// Writes the answer in the form that the client asked for.
    ///
    /// # Errors
    /// 400 for an `includeObject` that nobody knows; 406 for the metadata of an object where there is a list,
    /// and the other way round, and for protobuf of a kind that has no message.
    pub(crate) fn printer(&self) -> Result<Printer, Status> {
        let include = match &self.output.transform {
            Transform::Table(_) => include_object(&self.query)?,
            Transform::PartialMetadata { is_list, .. } => {
                self.check_metadata_form(*is_list)?;
                IncludeObject::Metadata
            }
            Transform::None => IncludeObject::Metadata,
        };
        let is_scale = self.subresource == Some(Subresource::Scale);
        Printer::new(&self.kind, is_scale, self.output.clone(), include, self.server.clock.clone())
    }

    /// Upstream's `asPartialObjectMetadata` and its list, which name the Go type at hand.
    fn check_metadata_form(&self, wants_list: bool) -> Result<(), Status> {
        let is_list = matches!(&*self.ctx.info.verb, "list" | "deletecollection");
        if is_list == wants_list {
            return Ok(());
        }
        let group = self.kind.group_version.group.split('.').next().filter(|group| !group.is_empty());
        let package = if self.kind.is_custom { "unstructured" } else { group.unwrap_or("core") };
        let name = if self.kind.is_custom { "Unstructured" } else { &*self.kind.kind };
        let (wanted, found, end) = if wants_list {
            ("PartialObjectMetadataList", "is not a list", "")
        } else {
            ("PartialObjectMetadata", "is a list", "List")
        };
        let message =
            format!("you requested {wanted}, but the requested object {found} (*{package}.{name}{end})");
        Err(Status::failure(406, "NotAcceptable", message))
    }

    /// What a body of this path is: a Scale for `scale`, else the kind itself.
    pub(crate) fn form(&self) -> BodyKind {
        match self.subresource {
            Some(Subresource::Scale) => {
                let (GroupVersion { group, version }, definition) = scale_of(&self.kind);
                BodyKind::named(&self.server, &group, &version, "Scale", &definition)
            }
            _ => BodyKind::of(&self.server, &self.kind),
        }
    }
}

/// Upstream's `checkName`: a PUT or patch may not change the name.
pub(crate) fn ensure_name(object: &Value, name: &str) -> Result<(), Status> {
    match object["metadata"]["name"].as_str().unwrap_or_default() {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        own if own == name => Ok(()),
        own => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
    }
}
