package v1

// Shade is a colour of another package.
type Shade string

const Grey Shade = "Grey"

// TypeMeta says what it is.
type TypeMeta struct {
	Kind       string `json:"kind,omitempty" protobuf:"bytes,1,opt,name=kind"`
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,2,opt,name=apiVersion"`
}

// ObjectMeta is of every object.
type ObjectMeta struct {
	Name          string   `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	ManagedFields []string `json:"managedFields,omitempty" protobuf:"bytes,17,rep,name=managedFields"`
}

// DeleteOptions has nothing here.
type DeleteOptions struct{}

// Time is a struct.
type Time struct {
	Seconds int64
}
