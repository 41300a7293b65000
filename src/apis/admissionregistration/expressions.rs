//! The expressions of webhooks and policies: what they may name, and what they must give
//! (`k8s.io/apiserver/pkg/admission/plugin/cel`).

use serde_json::Value;

use crate::tree::text;
use crate::validation::Field;
use apimachinery::field_error::{ErrorType, FieldErrors};
use cel::authorizer::{authorizer_type, resource_check_type};
use cel::{Environment, ObjectType, Program, Type};

golang::text_error! {
    /// An expression that does not compile, or gives something else; in upstream's words.
    pub struct BadExpression;
}

/// An expression with its program, or what is wrong with it.
pub type Compiled = (String, Result<Program, BadExpression>);

/// The variables of every expression; policies have `variables` besides. A message may not ask the
/// authorizer.
pub fn environment(has_params: bool, has_authorizer: bool) -> Environment {
    let environment = Environment::new()
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("request", request_type())
        .with_variable("namespaceObject", namespace_type());
    let environment = if has_params { environment.with_variable("params", Type::Dyn) } else { environment };
    if has_authorizer {
        // A name with a dot is one variable to upstream.
        environment
            .with_variable("authorizer", authorizer_type())
            .with_variable("authorizer.requestResource", resource_check_type())
    } else {
        environment
    }
}

/// `BuildRequestType`
fn request_type() -> Type {
    let strings = |name: &str, fields: &[&'static str]| {
        Type::object(name, fields.iter().map(|field| (*field, Type::String)))
    };
    let kind = || strings("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = || strings("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let user_info = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", Type::list(Type::String)),
        ("extra", Type::map_of(Type::list(Type::String))),
    ];
    let fields = [
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", Type::String),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", Type::object("kubernetes.UserInfo", user_info)),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    Type::object("kubernetes.AdmissionRequest", fields)
}

/// `BuildNamespaceType`: what a policy may see of a namespace.
fn namespace_type() -> Type {
    let metadata = [
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", Type::map_of(Type::String)),
        ("annotations", Type::map_of(Type::String)),
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", Type::list(Type::String)),
    ];
    let fields = [
        ("metadata", Type::object("kubernetes.NamespaceMetadata", metadata)),
        ("spec", Type::object("kubernetes.NamespaceSpec", [("finalizers", Type::list(Type::String))])),
        ("status", Type::object("kubernetes.NamespaceStatus", [("phase", Type::String)])),
    ];
    Type::object("kubernetes.Namespace", fields)
}

/// What the mutations of a policy may construct besides, `Object` and whatever is below it, `JSONPatch`, and
/// the functions for that. Neither its variables nor its conditions know them (`hasPatchTypes`).
pub fn with_patch_types(environment: Environment) -> Environment {
    let environment = environment.with_open_structure(APPLY_CONFIGURATION).with_json_patch();
    environment.with_structure(operation_type().into())
}

/// What an ApplyConfiguration gives.
pub fn apply_configuration_type() -> Type {
    Type::object(APPLY_CONFIGURATION, [])
}

/// What a JSONPatch gives: a list of operations.
pub fn json_patch_type() -> Type {
    Type::list(Type::Object(operation_type().into()))
}

const APPLY_CONFIGURATION: &str = "Object";

fn operation_type() -> ObjectType {
    let texts = ["op", "path", "from"].map(|field| (field.into(), Type::String));
    let fields = texts.into_iter().chain([("value".into(), Type::Dyn)]).collect();
    ObjectType { name: "JSONPatch".into(), fields }
}

/// Compiles an expression, which must be exactly of one of these types; without any, of whatever type.
///
/// # Errors
/// In upstream's words, as they stand behind a field of a policy.
pub fn compile(
    environment: &Environment,
    expression: &str,
    wanted: &[Type],
) -> Result<Program, BadExpression> {
    judge(environment.compile(expression).map_err(|error| error.described())?, wanted)
}

fn judge(program: Program, wanted: &[Type]) -> Result<Program, BadExpression> {
    if wanted.is_empty() || wanted.contains(program.result_type()) {
        return Ok(program);
    }
    let given = program.result_type().declared_name();
    match wanted {
        [one] => Err(format!("must evaluate to {} but got {given}", one.declared_name()).into()),
        many => {
            let names: Vec<String> = many.iter().map(Type::declared_name).collect();
            Err(format!("must evaluate to one of [{}] but got {given}", names.join(" ")).into())
        }
    }
}

/// Compiles the variables of a policy, each of which sees those before it, and declares them.
pub fn with_variables(environment: Environment, variables: &[Value]) -> (Environment, Vec<Compiled>) {
    let mut declared = environment;
    let mut fields = Vec::new();
    let mut compiled = Vec::new();
    for variable in variables {
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        let program = compile(&declared, expression, &[]);
        let of = program.as_ref().map_or(Type::Dyn, |program| program.result_type().clone());
        fields.push((name, of));
        declared = declared.with_variable("variables", Type::object("kubernetes.variables", fields.clone()));
        compiled.push((name.to_owned(), program));
    }
    (declared, compiled)
}

/// What a message may name: what everybody may, and the variables, but not the authorizer.
pub fn messages_environment(has_params: bool, declared: &Environment) -> Environment {
    let messages = environment(has_params, false);
    match declared.variable("variables") {
        Some(of) => messages.with_variable("variables", of.clone()),
        None => messages,
    }
}

/// Refuses an expression that does not compile.
pub fn check(environment: &Environment, expression: &Field, wanted: &[Type], errors: &mut FieldErrors) {
    match environment.compile(expression.text()) {
        Err(error) if error.is_instantiation() => {
            errors.push(&*expression.path, ErrorType::InternalError, String::new(), &error.described());
        }
        Err(error) => expression.invalid(error.described(), errors),
        Ok(program) => {
            if let Err(why) = judge(program, wanted) {
                expression.invalid(why, errors);
            }
        }
    }
}
