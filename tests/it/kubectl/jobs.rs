//! Jobs and CronJobs: the example of the documentation, its log and its story; a Job by hand from a CronJob.

use crate::support::{texts, with_each_kubectl};

const PI: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: pi
spec:
  template:
    spec:
      containers:
      - name: pi
        image: perl:5.34.0
        command: [\"perl\", \"-Mbignum=bpi\", \"-wle\", \"print bpi(2000)\"]
      restartPolicy: Never
  backoffLimit: 4
";

#[test]
fn jobs_are_run_and_read() {
    with_each_kubectl(|up, kubectl| {
        let file = up.file("job.yaml", PI);
        assert_eq!(kubectl.ok(&format!("apply -f {file}")), "job.batch/pi created\n");
        kubectl.ok("wait --for=condition=complete job/pi --timeout=60s");
        let said = kubectl.ok("logs job/pi");
        assert!(said.starts_with("3.14159265358979") && said.len() == "3.".len() + 1999 + 1, "{said}");
        let row = kubectl.ok("get job pi --no-headers");
        assert!(row.contains(" 1/1 "), "{row}");
        let described = kubectl.ok("describe job pi");
        let count = "0 Active (0 Ready) / 1 Succeeded / 0 Failed";
        assert!(described.contains(count) && described.contains("Job completed"), "{described}");
        let (story, said) = texts(&up.kubarium(&["trace", "job/pi", "--name", "test"]));
        assert!(story.contains("kube-scheduler") && story.contains("kubelet"), "{story}{said}");

        kubectl.ok("create cronjob tick --image=busybox --schedule=@hourly -- true");
        assert_eq!(kubectl.ok("create job now --from=cronjob/tick"), "job.batch/now created\n");
        kubectl.ok("wait --for=condition=complete job/now --timeout=60s");
        let refused = kubectl.fails("create cronjob tock --image=busybox --schedule=@often -- true");
        assert!(refused.contains("unrecognized descriptor: @often"), "{refused}");
    });
}
