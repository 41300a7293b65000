//! Which features a component has (`component-base/metrics/prometheus/feature`).

use crate::metrics::gauge;

/// `kubernetes_feature_enabled`: of each gate its name, its stage and whether it is on.
pub fn render(out: &mut String, gates: impl IntoIterator<Item = ([String; 2], bool)>) {
    let name = "kubernetes_feature_enabled";
    let help = "[BETA] This metric records the data about the stage and enablement of a k8s feature.";
    let values = gates.into_iter().map(|(gate, is_on)| (gate, u8::from(is_on)));
    gauge(out, (name, help), ["name", "stage"], values);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_told_with_their_stages() {
        let gate = |name: &str, stage: &str, is_on| ([name.to_owned(), stage.to_owned()], is_on);
        let mut out = String::new();
        render(&mut out, [gate("Flying", "ALPHA", false), gate("Walking", "", true)]);
        let samples: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "kubernetes_feature_enabled{name=\"Flying\",stage=\"ALPHA\"} 0",
                "kubernetes_feature_enabled{name=\"Walking\",stage=\"\"} 1"
            ]
        );
    }
}
