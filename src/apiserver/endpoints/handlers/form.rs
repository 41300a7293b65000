//! `BodyKind`: what a body is, and what the server makes of it before admission and after: the kind of the
//! path, or the kind of a subresource (Scale, Binding, Eviction).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::initializers_field;
use crate::endpoints::EndpointContext;
use crate::endpoints::query::FieldValidation;
use crate::endpoints::response::negotiation::unsupported_media_type;
use crate::request::RequestContext;
use apimachinery::decode::{self, BodyFormat, DecodeError, DecodeTarget, Decoded, ForeignType};
use apimachinery::field_error::FieldErrors;
use apimachinery::gvk::GroupVersion;
use apimachinery::schema::{self, Schema};
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::apiextensions::custom_resource::CustomResource;
use apis::kind::Kind;
use apis::scheme::Scheme;
use clock::Clock;

/// The kind of a body, with what is known of its fields.
pub(crate) struct BodyKind {
    group_version: GroupVersion,
    kind: Arc<str>,
    /// None for a custom kind: its objects are taken as they are.
    schema: Option<Arc<Schema>>,
    defaults: fn(&mut Value),
    stamps: fn(&mut Value, Time),
    clock: Clock,
    /// Of a custom kind: what prunes and defaults it.
    custom: Option<Arc<CustomResource>>,
    scheme: Arc<Scheme>,
    /// Whether `metadata.initializers` is a field.
    initializers: bool,
}

/// A body as it came.
pub(crate) enum Raw {
    /// From a socket.
    Bytes(Bytes, BodyFormat),
    /// From a caller in this process: a tree, which is decoded only where it is not as decoding leaves it.
    Tree(Value),
}

impl Raw {
    /// How many bytes came; none of a tree.
    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Raw::Bytes(bytes, _) => bytes.len(),
            Raw::Tree(_) => 0,
        }
    }
}

impl BodyKind {
    /// The kind of a resource.
    pub(crate) fn of(server: &EndpointContext, kind: &Kind) -> BodyKind {
        let schema = if kind.is_custom { None } else { server.schemas.get(&kind.definition) };
        BodyKind {
            group_version: kind.group_version.clone(),
            kind: kind.kind.clone(),
            schema,
            defaults: kind.defaults,
            stamps: kind.stamps,
            clock: server.clock.clone(),
            custom: CustomResource::shared(kind),
            scheme: server.scheme.clone(),
            initializers: server.initializers,
        }
    }

    /// The kind of a subresource; `definition` is its name in OpenAPI.
    pub(crate) fn named(
        server: &EndpointContext,
        group: &str,
        version: &str,
        kind: &str,
        definition: &str,
    ) -> BodyKind {
        BodyKind {
            group_version: GroupVersion::new(group, version),
            kind: kind.into(),
            schema: server.schemas.get(definition),
            defaults: |_| (),
            stamps: |_, _| (),
            clock: server.clock.clone(),
            custom: None,
            scheme: server.scheme.clone(),
            initializers: false,
        }
    }

    /// The object in a body, without `apiVersion` and `kind`.
    ///
    /// # Errors
    /// 415 for protobuf of a custom kind; 400 for what is no object of the kind, and for unknown fields where
    /// that is asked for.
    pub(crate) fn decode(
        &self,
        ctx: &RequestContext,
        raw: Raw,
        validation: FieldValidation,
    ) -> Result<Value, Status> {
        let mut value = match raw {
            Raw::Tree(mut value) if self.fits(&value) => {
                self.with_target(|target| self.prune(target, &mut value))
                    .map_err(|error| Status::bad_request(error.to_string()))?;
                value
            }
            Raw::Tree(value) => {
                let decoded = self.decode_tree(self.with_type(&value), None, false);
                let decoded = decoded.map_err(|error| Status::bad_request(error.to_string()))?;
                self.with_target(|target| heed(ctx, target, &decoded.strict_errors, validation))?;
                decoded.value
            }
            Raw::Bytes(_, BodyFormat::Protobuf) if self.schema.is_none() => {
                return Err(unsupported_media_type("application/json, application/yaml"));
            }
            Raw::Bytes(body, format) => {
                let decoded = self.decode_bytes(ctx, &body, format, validation);
                decoded
                    .inspect_err(|_| ctx.name_attempt(decode::name_in(&body, format).unwrap_or_default()))?
            }
        };
        strip_type(&mut value);
        if let Some(audit) = &ctx.audit {
            audit.heard(|| self.with_type(&value));
        }
        Ok(value)
    }

    fn decode_bytes(
        &self,
        ctx: &RequestContext,
        body: &Bytes,
        format: BodyFormat,
        validation: FieldValidation,
    ) -> Result<Value, Status> {
        self.with_target(|target| {
            let decoded = decode::decode(target, body, format);
            let mut decoded = decoded.map_err(|error| Status::bad_request(error.to_string()))?;
            if let Some(foreign) = &decoded.foreign {
                self.check_version(foreign)?;
                self.check_type(foreign, &decoded.value)?;
            }
            if self.initializers {
                let given = initializers_field::of_body(body, format);
                initializers_field::put_back(&mut decoded.value, given, &mut decoded.strict_errors);
            }
            let pruned = self.prune(target, &mut decoded.value);
            let pruned = pruned.map_err(|error| Status::bad_request(error.to_string()))?;
            decoded.strict_errors.extend(pruned);
            heed(ctx, target, &decoded.strict_errors, validation)?;
            Ok(decoded.value)
        })
    }

    /// Whether a tree is as decoding would leave it: what components send is.
    fn fits(&self, tree: &Value) -> bool {
        self.schema.as_ref().map_or_else(|| decode::metadata_fits(tree), |own| schema::fits(own, tree))
    }

    /// A tree that a patch made, read as the kind; by conversion where that is how upstream reads it. Of a
    /// patch that is given only what it reaches is read: the rest is trusted to be of the kind.
    ///
    /// # Errors
    /// As decoding; the caller says it in a patch's words.
    pub(crate) fn decode_tree(
        &self,
        tree: Value,
        patch: Option<&Value>,
        is_converted: bool,
    ) -> Result<Decoded, DecodeError> {
        let given = initializers_field::of_tree(&tree).filter(|_| self.initializers);
        let mut decoded = self.with_target(|target| match (patch, is_converted) {
            (Some(patch), _) => decode::decode_patched(target, tree, patch, is_converted),
            (None, true) => decode::decode_merged(target, tree),
            (None, false) => decode::decode_value(target, tree),
        })?;
        initializers_field::put_back(&mut decoded.value, given, &mut decoded.strict_errors);
        let pruned = match &decoded.foreign {
            Some(foreign) => self.prune_foreign(foreign, &decoded.value),
            None => self.with_target(|target| self.prune(target, &mut decoded.value))?,
        };
        decoded.strict_errors.extend(pruned);
        strip_type(&mut decoded.value);
        Ok(decoded)
    }

    fn check_version(&self, given: &ForeignType) -> Result<(), Status> {
        let expected = self.group_version.to_string();
        if given.api_version == expected {
            return Ok(());
        }
        Err(Status::bad_request(decode::other_version(&given.api_version, &expected)))
    }

    /// `ValidateTypeMeta`: what a custom resource says that it is.
    ///
    /// # Errors
    /// 422, of the kind that it says.
    pub(crate) fn check_type(&self, given: &ForeignType, object: &Value) -> Result<(), Status> {
        let expected = self.group_version.to_string();
        let mut errors = FieldErrors::default();
        let fields = [("kind", &given.kind, &*self.kind), ("apiVersion", &given.api_version, &*expected)];
        for (path, given, expected) in fields {
            if given != expected {
                errors.invalid(path, &given.as_str().into(), format!("must be {expected}"));
            }
        }
        let (group, version) = given.api_version.split_once('/').unwrap_or(("", &given.api_version));
        let gvk = GroupVersion::new(group, version).kind(&given.kind);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Status::invalid(&gvk, name, &errors))
    }

    /// Fills in defaults: those of the schema, then those of the kind.
    ///
    /// # Errors
    /// 500 when the defaults of a custom kind make the object too large to be stored.
    pub(crate) fn apply_defaults(&self, object: &mut Value) -> Result<(), Status> {
        if let Some(schema) = &self.schema {
            schema::apply_defaults(schema, object);
        }
        (self.defaults)(object);
        (self.stamps)(object, self.clock.now());
        if let Some(custom) = &self.custom {
            custom.apply_defaults(object)?;
        }
        Ok(())
    }

    /// Fills in the defaults of what was applied: nulls of a custom kind stay until it is validated.
    ///
    /// # Errors
    /// As [`BodyKind::apply_defaults`].
    pub(crate) fn fill_defaults(&self, object: &mut Value) -> Result<(), Status> {
        match &self.custom {
            Some(custom) => Ok(custom.fill_defaults(object)?),
            None => self.apply_defaults(object),
        }
    }

    /// Drops what the schema of a custom kind does not know; says so as decoding says it of built-in kinds.
    fn prune(&self, target: &DecodeTarget, object: &mut Value) -> Result<Vec<String>, DecodeError> {
        let Some(custom) = &self.custom else { return Ok(vec![]) };
        let dropped = custom.prune(object).map_err(|errors| DecodeError::of(target, &errors.to_string()))?;
        Ok(dropped.into_iter().map(|path| format!("unknown field {path:?}")).collect())
    }

    /// What a patch made another kind of is not looked at; of another version nothing is known.
    fn prune_foreign(&self, given: &ForeignType, object: &Value) -> Vec<String> {
        let group = given.api_version.split_once('/').map_or("", |(group, _)| group);
        let is_of_kind = *group == *self.group_version.group && *given.kind == *self.kind;
        let known = |name: &&String| matches!(&***name, "apiVersion" | "kind" | "metadata");
        let unknown = object.as_object().into_iter().flat_map(|map| map.keys()).filter(|name| !known(name));
        unknown.filter(|_| is_of_kind).map(|name| format!("unknown field {name:?}")).collect()
    }

    /// Fills in what upstream always writes, as the last step before the registry.
    pub(crate) fn complete(&self, object: &mut Value) {
        if let Some(schema) = &self.schema {
            schema::complete(schema, object);
            strip_type(object);
        }
    }

    /// The object with `apiVersion` and `kind`, as a client sees it.
    pub(crate) fn with_type(&self, object: &Value) -> Value {
        let mut map = object.as_object().cloned().unwrap_or_default();
        map.insert("apiVersion".into(), self.group_version.to_string().into());
        map.insert("kind".into(), Value::from(&*self.kind));
        Value::Object(map)
    }

    /// `apps/v1`, and `apps/v1, Kind=Deployment` as upstream prints it.
    pub(crate) fn names(&self) -> (String, String) {
        let GroupVersion { group, version } = &self.group_version;
        (self.group_version.to_string(), format!("{group}/{version}, Kind={}", self.kind))
    }

    /// The schema; of a custom kind one that knows nothing.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.clone().unwrap_or_default()
    }

    fn with_target<T>(&self, run: impl FnOnce(&DecodeTarget) -> T) -> T {
        let schema = self.schema();
        let is_registered = |group: &str, version: &str, kind: &str| {
            self.scheme.kind(&GroupVersion::new(group, version), kind).is_some()
        };
        run(&DecodeTarget {
            group: &self.group_version.group,
            version: &self.group_version.version,
            kind: &self.kind,
            schema: &schema,
            typed: self.schema.is_some(),
            is_registered: &is_registered,
        })
    }
}

/// Fields that are unknown or stand twice: refused, told, or left alone.
fn heed(
    ctx: &RequestContext,
    target: &DecodeTarget,
    errors: &[String],
    validation: FieldValidation,
) -> Result<(), Status> {
    if validation == FieldValidation::Strict && !errors.is_empty() {
        return Err(Status::bad_request(DecodeError::strict(target, errors).to_string()));
    }
    warn(ctx, errors, validation);
    Ok(())
}

/// Says what was found beside the object, unless it is to be ignored.
pub(crate) fn warn(ctx: &RequestContext, errors: &[String], validation: FieldValidation) {
    if validation == FieldValidation::Ignore {
        return;
    }
    errors.iter().for_each(|error| warn_lines(ctx, error));
}

/// Of YAML each line is a warning of its own (`parseYAMLWarnings`).
pub(crate) fn warn_lines(ctx: &RequestContext, error: &str) {
    let of_yaml = error.strip_prefix("error converting YAML to JSON: ").unwrap_or(error);
    match of_yaml.strip_prefix("yaml: unmarshal errors:\n") {
        Some(lines) => lines.lines().for_each(|line| ctx.warn(line.trim())),
        None => ctx.warn(error),
    }
}

/// Takes `apiVersion` and `kind` away: the path says them.
fn strip_type(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
}
