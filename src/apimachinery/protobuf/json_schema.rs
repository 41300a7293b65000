//! The types of a CustomResourceDefinition's schema that are one of two things, and in JSON just that thing:
//! `JSONSchemaPropsOrBool`, `...OrArray` and `...OrStringArray`.

/// What the names of these types begin with.
pub(super) const PREFIX: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// One of the two things that each of them may be.
pub(super) const JSON_SCHEMA_PROPS: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
