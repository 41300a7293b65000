//! A custom kind in a user's hands: create, wait, get by short name, explain, apply with bad fields, edit, delete.

use crate::support::with_each_kubectl;

const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Spec, type: string, description: The cron spec, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        description: A job at times.
        type: object
        properties:
          spec:
            description: What is wanted.
            type: object
            required: [cronSpec]
            x-kubernetes-validations:
            - {rule: "self.replicas <= 10", message: no more than ten}
            properties:
              cronSpec: {type: string, description: When.}
              image: {type: string}
              replicas: {type: integer, default: 1}
          status: {type: object, properties: {replicas: {type: integer}}}
"#;

const CRON_TAB: &str = r#"apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: my-cron
spec:
  cronSpec: "* * * * */5"
  image: my-image
"#;

#[test]
fn a_custom_kind_is_a_kind_like_any_other() {
    with_each_kubectl(|up, kubectl| {
        let definition = up.file("crd.yaml", DEFINITION);
        let object = up.file("cron.yaml", CRON_TAB);
        kubectl.ok(&format!("create -f {definition}"));
        kubectl.ok("wait --for=condition=Established crd/crontabs.stable.example.com --timeout=30s");
        assert!(kubectl.ok("get crd").contains("crontabs.stable.example.com"));
        kubectl.ok(&format!("apply -f {object}"));
        let table = kubectl.ok("get ct");
        for text in ["NAME", "SPEC", "REPLICAS", "AGE", "my-cron", "* * * * */5"] {
            assert!(table.contains(text), "no {text} in\n{table}");
        }
        assert!(kubectl.ok("get all").contains("crontab.stable.example.com/my-cron"));
        assert!(kubectl.ok("api-resources --api-group=stable.example.com").contains("CronTab"));
        // The documents follow a definition a moment later, as upstream's do.
        kubectl.until("explain crontab.spec", |text| text.contains("What is wanted."));
        assert!(kubectl.ok("explain crontab --recursive").contains("cronSpec"));
        kubectl.ok("scale ct my-cron --replicas=3");
        assert_eq!(kubectl.ok("get ct my-cron -o jsonpath={.spec.replicas}"), "3");
        let bad = up.file("bad.yaml", &CRON_TAB.replace("image: my-image", "imag: my-image"));
        let refused = kubectl.fails(&format!("apply -f {bad}"));
        assert!(refused.contains("spec.imag") || refused.contains("\"imag\""), "{refused}");
        let patch = r#"patch ct my-cron --type=merge -p {"spec":{"replicas":11}}"#;
        assert!(kubectl.fails(patch).contains("no more than ten"));
        assert!(kubectl.fails("get ct --field-selector spec.image=x").contains("field label not supported"));
        kubectl.ok("describe ct my-cron");
        kubectl.ok("delete ct my-cron");
        kubectl.ok(&format!("delete -f {definition} --timeout=30s"));
        let gone = kubectl.fails("get crd crontabs.stable.example.com");
        assert!(gone.contains("not found"), "{gone}");
    });
}
