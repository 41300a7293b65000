//! The points of a scheduling attempt at which plugins run, which of them a built-in plugin extends, and the
//! order in which they run.

/// An extension point, by its name in KubeSchedulerConfiguration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// Whether a pod may be tried at all.
    PreEnqueue,
    /// Who is tried first.
    QueueSort,
    /// A look at the pod alone.
    PreFilter,
    /// Whether a node will do.
    Filter,
    /// Whether room can be made.
    PostFilter,
    /// A look at the nodes that will do.
    PreScore,
    /// How well a node does.
    Score,
    /// The pod is taken to be on its node.
    Reserve,
    /// Whether it may be bound now.
    Permit,
    /// What is done before it is bound.
    PreBind,
    /// The binding.
    Bind,
    /// It is bound.
    PostBind,
}

/// The points at which a built-in plugin has something to do.
pub fn points_of(name: &str) -> Option<&'static [Point]> {
    use Point::{
        Bind, Filter, Permit, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
    };
    Some(match name {
        "SchedulingGates" => &[PreEnqueue],
        "PrioritySort" => &[QueueSort],
        "NodeUnschedulable" | "NodeName" => &[Filter],
        "TaintToleration" => &[Filter, PreScore, Score],
        "NodeAffinity" | "NodeResourcesFit" | "PodTopologySpread" | "InterPodAffinity" => {
            &[PreFilter, Filter, PreScore, Score]
        }
        "NodePorts" | "NodeDeclaredFeatures" | "VolumeRestrictions" | "NodeVolumeLimits" | "VolumeZone" => {
            &[PreFilter, Filter]
        }
        "VolumeBinding" => &[PreFilter, Filter, Reserve, PreBind],
        "DynamicResources" => {
            &[PreEnqueue, PreFilter, Filter, PostFilter, PreScore, Score, Reserve, Permit, PreBind]
        }
        "DefaultPreemption" => &[PreEnqueue, PostFilter],
        "NodeResourcesBalancedAllocation" | "ImageLocality" => &[PreScore, Score],
        "DefaultBinder" => &[Bind],
        _ => return None,
    })
}

impl Point {
    /// All of them, in the order in which a pod meets them.
    pub const ALL: &'static [Point] = &[
        Point::PreEnqueue,
        Point::QueueSort,
        Point::PreFilter,
        Point::Filter,
        Point::PostFilter,
        Point::PreScore,
        Point::Score,
        Point::Reserve,
        Point::Permit,
        Point::PreBind,
        Point::Bind,
        Point::PostBind,
    ];

    /// In the configuration: `preFilter`.
    pub fn key(self) -> String {
        let name = format!("{self:?}");
        name[..1].to_lowercase() + &name[1..]
    }
}

/// Which plugins run at each point, by their places in the list of all, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Orders([Vec<usize>; Point::ALL.len()]);

impl Orders {
    /// Those of one point.
    pub fn at(&self, point: Point) -> &[usize] {
        &self.0[point as usize]
    }

    /// Says which run at a point.
    pub fn set(&mut self, point: Point, order: Vec<usize>) {
        self.0[point as usize] = order;
    }
}
