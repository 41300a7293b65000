//! agnhost's `webhook`: reviews of requests, answered by the path; and `crd-conversion-webhook`. What they
//! say is JSON that somebody sends: of Kubernetes they know as much as the real ones need.

use base64::Engine;
use serde_json::{Map, Value, json};

use crate::requests::{WebAnswer, WebRequest};

/// `always-allow-delay-5s`
const DELAY: std::time::Duration = std::time::Duration::from_secs(5);
/// A label or a key of its tests, and what it forbids.
const MARK: &str = "webhook-e2e-test";
const DISALLOW: &str = "webhook-disallow";

/// What is said to a review: whether it is allowed, why not, and what is changed.
#[derive(Default)]
struct ReviewVerdict {
    is_denied: bool,
    result: Option<Value>,
    patch: Option<Value>,
}

impl ReviewVerdict {
    fn denied(result: Value) -> ReviewVerdict {
        ReviewVerdict { is_denied: true, result: Some(result), patch: None }
    }

    fn patched(patch: Value) -> ReviewVerdict {
        ReviewVerdict { patch: Some(patch), ..ReviewVerdict::default() }
    }

    fn response(self, uid: &Value) -> Value {
        let mut response = json!({"uid": uid, "allowed": !self.is_denied});
        if let Some(mut result) = self.result {
            result["metadata"] = json!({});
            response["status"] = result;
        }
        if let Some(patch) = self.patch {
            let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
            response["patch"] = patch.into();
            response["patchType"] = "JSONPatch".into();
        }
        response
    }
}

/// What it answers to whoever asks; `sidecar` is its `--sidecar-image`.
pub(crate) fn answer(asked: &WebRequest<'_>, sidecar: &str) -> WebAnswer {
    let path = asked.target.split('?').next().unwrap_or_default();
    if path == "/readyz" {
        return WebAnswer::text(200, "ok");
    }
    let Some(judge) = judge(path) else { return WebAnswer::not_found() };
    // Whoever says something else hears nothing.
    if asked.header("content-type") != Some("application/json") {
        return WebAnswer::text(200, "");
    }
    let review: Value = match serde_json::from_slice(asked.body) {
        Ok(review) => review,
        Err(error) => return WebAnswer::error(400, format!("Request could not be decoded: {error}")),
    };
    let is_known = matches!(&review["apiVersion"], Value::String(version)
        if matches!(version.as_str(), "admission.k8s.io/v1" | "admission.k8s.io/v1beta1"));
    if !is_known || review["kind"] != "AdmissionReview" {
        let (version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        return WebAnswer::error(400, format!("Unsupported group version kind: {version}, Kind={kind}"));
    }
    let request = &review["request"];
    if path == "/pods" && request["object"]["metadata"]["labels"][MARK] == "wait-forever" {
        return WebAnswer { delay: std::time::Duration::MAX, ..WebAnswer::default() };
    }
    let response = judge(request, sidecar).response(&request["uid"]);
    let answered =
        json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
    let answer = WebAnswer::typed(200, "application/json", answered.to_string());
    if path == "/always-allow-delay-5s" { WebAnswer { delay: DELAY, ..answer } } else { answer }
}

type Judge = fn(&Value, &str) -> ReviewVerdict;

fn judge(path: &str) -> Option<Judge> {
    Some(match path {
        "/always-allow-delay-5s" => |_, _| ReviewVerdict {
            result: Some(json!({"message": "this webhook allows all requests"})),
            ..ReviewVerdict::default()
        },
        "/always-deny" => {
            |_, _| ReviewVerdict::denied(json!({"message": "this webhook denies all requests"}))
        }
        "/add-label" => |request, _| add_label(&request["object"]["metadata"]["labels"]),
        "/pods" => |request, _| pods(request),
        "/pods/attach" => |request, _| attaching(request),
        "/mutating-pods" => |request, _| add_init_container(request),
        "/mutating-pods-sidecar" => add_sidecar,
        "/configmaps" => |request, _| data(request, "configmap", "contains unwanted key and value"),
        "/mutating-configmaps" | "/mutating-custom-resource" => |request, _| mutated(&request["object"]),
        "/custom-resource" => |request, _| data(request, "custom resource", "contains unwanted data"),
        "/crd" => |request, _| definition(request),
        _ => return None,
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn add_label(labels: &Value) -> ReviewVerdict {
    let none = Map::new();
    let labels = labels.as_object().unwrap_or(&none);
    let path = "/metadata/labels/added-label";
    match labels.get("added-label") {
        _ if labels.is_empty() => ReviewVerdict::patched(
            json!([{"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}}]),
        ),
        None => ReviewVerdict::patched(json!([{"op": "add", "path": path, "value": "yes"}])),
        Some(label) if label != "yes" => {
            ReviewVerdict::patched(json!([{"op": "replace", "path": path, "value": "yes"}]))
        }
        Some(_) => ReviewVerdict::default(),
    }
}

fn is_of(request: &Value, resource: &str) -> bool {
    request["resource"]["resource"] == *resource
}

fn pods(request: &Value) -> ReviewVerdict {
    if !is_of(request, "pods") {
        return ReviewVerdict::denied(json!({"message": "expect resource to be /v1, Resource=pods"}));
    }
    let pod = &request["object"];
    let mut why = String::new();
    if pod["metadata"]["labels"][MARK] == DISALLOW {
        why.push_str("the pod contains unwanted label; ");
    }
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        if text(&container["name"]).contains(DISALLOW) {
            why.push_str("the pod contains unwanted container name; ");
        }
    }
    if why.is_empty() {
        ReviewVerdict::default()
    } else {
        ReviewVerdict::denied(json!({"message": why.trim()}))
    }
}

fn attaching(request: &Value) -> ReviewVerdict {
    let options = &request["object"];
    let is_meant = request["name"] == "to-be-attached-pod" && request["subResource"] == "attach";
    if is_meant && options["stdin"] == true && options["container"] == "container1" {
        return ReviewVerdict::denied(
            json!({"message": "attaching to pod 'to-be-attached-pod' is not allowed"}),
        );
    }
    ReviewVerdict::default()
}

fn has_container(list: &Value, name: &str) -> bool {
    list.as_array().into_iter().flatten().any(|container| container["name"] == *name)
}

fn add_init_container(request: &Value) -> ReviewVerdict {
    let pod = &request["object"];
    let name = "webhook-added-init-container";
    if pod["metadata"]["name"] != "webhook-to-be-mutated"
        || has_container(&pod["spec"]["initContainers"], name)
    {
        return ReviewVerdict::default();
    }
    let container = json!({"image": "webhook-added-image", "name": name, "resources": {}});
    ReviewVerdict::patched(json!([{"op": "add", "path": "/spec/initContainers", "value": [container]}]))
}

fn add_sidecar(request: &Value, image: &str) -> ReviewVerdict {
    if image.is_empty() {
        let message = "No image specified by the sidecar-image parameter";
        return ReviewVerdict::denied(json!({"status": "Failure", "message": message, "code": 500}));
    }
    let name = "webhook-added-sidecar";
    if has_container(&request["object"]["spec"]["containers"], name) {
        return ReviewVerdict::default();
    }
    let container = json!({"image": image, "name": name, "resources": {}});
    ReviewVerdict::patched(json!([{"op": "add", "path": "/spec/containers/-", "value": container}]))
}

/// A key with a value that may not be written, or not be deleted.
fn data(request: &Value, what: &str, unwanted: &str) -> ReviewVerdict {
    let operation = text(&request["operation"]);
    let object = if operation == "DELETE" { &request["oldObject"] } else { &request["object"] };
    let reason = match (text(&object["data"][MARK]), operation) {
        (DISALLOW, "CREATE" | "UPDATE") => format!("the {what} {unwanted}"),
        ("webhook-nondeletable", "DELETE") => {
            format!("the {what} cannot be deleted because it contains unwanted key and value")
        }
        _ => return ReviewVerdict::default(),
    };
    ReviewVerdict::denied(json!({"reason": reason}))
}

/// One stage after the other.
fn mutated(object: &Value) -> ReviewVerdict {
    let data = &object["data"];
    let stage =
        |number: u8| json!([{"op": "add", "path": format!("/data/mutation-stage-{number}"), "value": "yes"}]);
    if data["mutation-stage-1"] == "yes" {
        ReviewVerdict::patched(stage(2))
    } else if data["mutation-start"] == "yes" {
        ReviewVerdict::patched(stage(1))
    } else {
        ReviewVerdict::default()
    }
}

fn definition(request: &Value) -> ReviewVerdict {
    if !is_of(request, "customresourcedefinitions") {
        return ReviewVerdict::denied(json!({"message": "expect resource to be customresourcedefinitions"}));
    }
    if request["object"]["metadata"]["labels"][MARK] == DISALLOW {
        return ReviewVerdict::denied(json!({"message": "the crd contains unwanted label"}));
    }
    ReviewVerdict::default()
}

/// `/crdconvert`: objects of `stable.example.com` from one version to the other.
pub(crate) fn convert(asked: &WebRequest<'_>) -> WebAnswer {
    match asked.target.split('?').next() {
        Some("/crdconvert") => {}
        Some("/readyz") => return WebAnswer::text(200, "ok"),
        _ => return WebAnswer::not_found(),
    }
    let kind = asked.header("content-type").unwrap_or_default();
    if kind != "application/json" {
        return WebAnswer::error(400, format!("invalid Content-Type header `{kind}`"));
    }
    let mut review: Value = match serde_json::from_slice(asked.body) {
        Ok(review) => review,
        Err(error) => {
            let body = String::from_utf8_lossy(asked.body);
            return WebAnswer::error(400, format!("failed to deserialize body ({body}) with error {error}"));
        }
    };
    if review["kind"] != "ConversionReview" {
        let (version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        return WebAnswer::error(400, format!("Unsupported group version kind: {version}, Kind={kind}"));
    }
    let request = review["request"].take();
    let wanted = text(&request["desiredAPIVersion"]);
    let objects = request["objects"].as_array().into_iter().flatten();
    let converted: Result<Vec<Value>, String> = objects.map(|object| converted(object, wanted)).collect();
    let mut response = match converted {
        Ok(objects) => json!({"convertedObjects": objects, "result": {"status": "Success"}}),
        Err(why) => json!({"convertedObjects": null, "result": {"status": "Failure", "message": why}}),
    };
    response["uid"] = request["uid"].clone();
    // The real one empties what it was asked, and leaves it there.
    review["request"] = json!({"uid": "", "desiredAPIVersion": "", "objects": null});
    review["response"] = response;
    WebAnswer::typed(200, "application/json", format!("{review}\n"))
}

fn converted(object: &Value, wanted: &str) -> Result<Value, String> {
    let mut converted = object.clone();
    let from = text(&object["apiVersion"]);
    if from == wanted {
        return Err(format!("conversion from a version to itself should not call the webhook: {wanted}"));
    }
    let v1 = "stable.example.com/v1";
    let v2 = "stable.example.com/v2";
    let unexpected = |version: &str| format!("unexpected conversion version {version:?}");
    let members = converted.as_object_mut().ok_or_else(|| unexpected(from))?;
    match (from, wanted) {
        (from, to) if from == v1 && to == v2 => {
            if let Some(address) = members.remove("hostPort") {
                let parts: Vec<&str> = text(&address).split(':').collect();
                let [host, port] = parts.as_slice() else {
                    return Err(format!("invalid hostPort value `{}`", text(&address)));
                };
                members.insert("host".into(), (*host).into());
                members.insert("port".into(), (*port).into());
            }
        }
        (from, to) if from == v2 && to == v1 => {
            let parts = (members.remove("host"), members.remove("port"));
            if parts != (None, None) {
                let (host, port) = (parts.0.unwrap_or_default(), parts.1.unwrap_or_default());
                members.insert("hostPort".into(), format!("{}:{}", text(&host), text(&port)).into());
            }
        }
        (from, to) => return Err(unexpected(if from == v1 || from == v2 { to } else { from })),
    }
    members.insert("apiVersion".into(), wanted.into());
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked<'a>(target: &'a str, body: &'a [u8]) -> WebRequest<'a> {
        let headers = vec![("content-type", "application/json")];
        WebRequest { method: "POST", target, headers, body, ..WebRequest::default() }
    }

    fn reviewed(path: &str, request: Value) -> Value {
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let answered = answer(&asked(path, review.to_string().as_bytes()), "sidecar:1");
        let mut response: Value = serde_json::from_str(&answered.body).unwrap();
        let mut response = response["response"].take();
        if let Some(patch) = response["patch"].as_str() {
            let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
            response["patch"] = serde_json::from_slice(&patch).unwrap();
        }
        response
    }

    #[test]
    fn each_path_judges_as_the_real_one() {
        let pod = |labels: Value, name: &str| {
            let pod = json!({"metadata": {"name": "a", "labels": labels}, "spec": {"containers": [{"name": name}]}});
            json!({"uid": "1", "resource": {"resource": "pods"}, "object": pod})
        };
        assert_eq!(reviewed("/pods", pod(json!({}), "main")), json!({"uid": "1", "allowed": true}));
        let both = "the pod contains unwanted label; the pod contains unwanted container name;";
        let denied = json!({"uid": "1", "allowed": false, "status": {"metadata": {}, "message": both}});
        assert_eq!(reviewed("/pods", pod(json!({MARK: DISALLOW}), "webhook-disallow")), denied);
        let first = json!([{"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}}]);
        assert_eq!(reviewed("/add-label", pod(json!({}), "a"))["patch"], first);
        let third = json!([{"op": "replace", "path": "/metadata/labels/added-label", "value": "yes"}]);
        assert_eq!(reviewed("/add-label", pod(json!({"added-label": "no"}), "a"))["patch"], third);
        let map = |operation: &str, value: &str| {
            let object = json!({"data": {MARK: value}});
            json!({"operation": operation, "object": object, "oldObject": object})
        };
        let reason =
            |operation, value| reviewed("/configmaps", map(operation, value))["status"]["reason"].take();
        assert_eq!(reason("CREATE", DISALLOW), "the configmap contains unwanted key and value");
        assert_eq!(reason("DELETE", DISALLOW), Value::Null);
        let kept = "the configmap cannot be deleted because it contains unwanted key and value";
        assert_eq!(reason("DELETE", "webhook-nondeletable"), kept);
        let stage =
            |data: Value| reviewed("/mutating-configmaps", json!({"object": {"data": data}}))["patch"].take();
        assert_eq!(stage(json!({"mutation-start": "yes"}))[0]["path"], "/data/mutation-stage-1");
        assert_eq!(stage(json!({"mutation-stage-1": "yes"}))[0]["path"], "/data/mutation-stage-2");
        assert_eq!(stage(json!({})), Value::Null);
        assert_eq!(
            reviewed("/mutating-pods-sidecar", pod(json!({}), "a"))["patch"][0]["value"]["image"],
            "sidecar:1"
        );
        assert_eq!(reviewed("/always-deny", json!({}))["allowed"], false);
        let options = json!({"stdin": true, "container": "container1"});
        let attach = json!({"name": "to-be-attached-pod", "subResource": "attach", "object": options});
        assert_eq!(reviewed("/pods/attach", attach)["allowed"], false);
    }

    #[test]
    fn what_is_no_review_is_told() {
        let code = |path: &str, body: &str| answer(&asked(path, body.as_bytes()), "").code;
        assert_eq!((code("/none", "{}"), code("/pods", "{"), code("/pods", "{}")), (404, 400, 400));
        assert_eq!(convert(&asked("/crdconvert", b"[")).code, 400);
        assert_eq!(answer(&asked("/readyz", b""), "").body, "ok");
        let ready = convert(&asked("/readyz?a", b""));
        assert_eq!((ready.code, &*ready.body), (200, "ok"));
        assert_eq!(convert(&asked("/ready", b"")).code, 404);
    }

    #[test]
    fn objects_are_converted_to_and_fro() {
        let converted = |object: Value, wanted: &str| {
            let request = json!({"uid": "7", "desiredAPIVersion": wanted, "objects": [object]});
            let review = json!({"kind": "ConversionReview", "request": request}).to_string();
            let answered = convert(&asked("/crdconvert", review.as_bytes()));
            serde_json::from_str::<Value>(&answered.body).unwrap()["response"].take()
        };
        let v1 = "stable.example.com/v1";
        let v2 = "stable.example.com/v2";
        let old = json!({"apiVersion": v1, "hostPort": "localhost:80"});
        let new = json!({"apiVersion": v2, "host": "localhost", "port": "80"});
        assert_eq!(converted(old.clone(), v2)["convertedObjects"][0], new);
        assert_eq!(converted(new, v1)["convertedObjects"][0], old);
        let failed = converted(json!({"apiVersion": v1, "hostPort": "a"}), v2);
        assert_eq!(
            (&failed["uid"], &failed["result"]["message"]),
            (&"7".into(), &"invalid hostPort value `a`".into())
        );
        let same = converted(old, v1)["result"]["message"].take();
        assert_eq!(same, format!("conversion from a version to itself should not call the webhook: {v1}"));
    }
}
