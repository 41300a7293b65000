//! The name in a body that is not decoded: for those who tell the story of a request that was refused.

use serde::Deserialize;

use super::{BodyFormat, first_byte};
use crate::{protobuf, yaml};

#[derive(Default, Deserialize)]
struct NamedInMetadata {
    #[serde(default)]
    metadata: NameMetadata,
}

#[derive(Default, Deserialize)]
struct NameMetadata {
    #[serde(default)]
    name: String,
}

/// `metadata.name` of a body; nothing where there is none, as with `generateName`, or where the body cannot
/// be read. Nothing else of it is looked at.
pub fn name_in(body: &[u8], format: BodyFormat) -> Option<String> {
    let name = match format {
        BodyFormat::Protobuf => protobuf::name_in(body)?,
        // What may have aliases is read for those who are known, not for strangers.
        BodyFormat::Yaml if body.contains(&b'*') && first_byte(body) != Some(b'{') => return None,
        BodyFormat::Yaml if first_byte(body) != Some(b'{') => {
            NamedInMetadata::deserialize(yaml::to_json(body).ok()?.value).ok()?.metadata.name
        }
        BodyFormat::Json | BodyFormat::Yaml => {
            serde_json::from_slice::<NamedInMetadata>(body).ok()?.metadata.name
        }
    };
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_name_is_found_in_every_format() {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "x": 1}, "spec": {"y": [1]}});
        let json = object.to_string();
        let yaml = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels: {a: b}\nspec: {y: 1}\n";
        let message = {
            let mut out = Vec::new();
            protobuf::seal(&mut out, "v1", "Pod", |object| {
                protobuf::write_nested(object, 1, |metadata| protobuf::write_bytes(metadata, 1, b"web"));
            });
            out
        };
        for (body, format) in [
            (json.as_bytes(), BodyFormat::Json),
            (json.as_bytes(), BodyFormat::Yaml),
            (yaml.as_bytes(), BodyFormat::Yaml),
            (&message, BodyFormat::Protobuf),
        ] {
            assert_eq!(name_in(body, format).as_deref(), Some("web"), "{format:?}");
        }
    }

    #[test]
    fn what_has_no_name_or_is_broken_has_none() {
        for body in ["", "{", "[]", "{\"metadata\":{\"generateName\":\"a-\"}}", "{\"metadata\":{\"name\":1}}"]
        {
            for format in [BodyFormat::Json, BodyFormat::Yaml, BodyFormat::Protobuf] {
                assert_eq!(name_in(body.as_bytes(), format), None, "{body}");
            }
        }
    }

    #[test]
    fn aliases_that_stand_for_too_much_are_not_followed() {
        let level = |name: char, below: char| {
            format!("{name}: &{name} [{}]\n", vec![format!("*{below}"); 9].join(", "))
        };
        let levels: Vec<char> = ('a'..='i').collect();
        let bomb: String = levels.windows(2).map(|pair| level(pair[1], pair[0])).collect();
        let body = format!("metadata: {{name: web}}\na: &a [x, x, x, x, x, x, x, x, x]\n{bomb}");
        assert_eq!(name_in(body.as_bytes(), BodyFormat::Yaml), None);
    }

    /// As texts of JSON such keys would double with each level.
    #[test]
    fn keys_that_are_mappings_are_refused() {
        let body = format!("metadata: {{name: web}}\nx: {}a: b{}\n", "{".repeat(30), "}: c".repeat(30));
        assert!(name_in(body.as_bytes(), BodyFormat::Yaml).is_none_or(|name| name == "web"));
        let refused = yaml::from_str::<serde_json::Value>("{{a: b}: c} # *");
        assert!(refused.unwrap_err().to_string().contains("invalid map key"));
    }
}
