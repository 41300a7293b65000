package features

const (
	// Flying is of the client.
	Flying Feature = "Flying"
)

var defaultVersionedKubernetesFeatureGates = map[Feature]VersionedSpecs{
	Flying: {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: Alpha},
		{Version: version.MustParse("1.35"), Default: true, PreRelease: GA, LockToDefault: true},
	},
}
