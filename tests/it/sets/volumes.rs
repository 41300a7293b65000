//! Claims and volumes of whole clusters.
