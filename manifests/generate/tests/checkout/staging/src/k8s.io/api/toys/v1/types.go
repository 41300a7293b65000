package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ball bounces.
type Ball struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Spec BallSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// Colour is what is seen.
// +enum
type Colour string

const (
	// Red is like fire.
	Red  Colour = "Red"
	Blue        = Colour("Blue") // Blue is like the sea.
	// Grey is like the constant of another package.
	Grey = Colour(metav1.Grey)
)

const ColourOfNobody = "Black"

// Size has no values of its own.
type Size string

const Large Size = "Large"

// Owners is a message of its own.
// +protobuf.nullable=true
type Owners []string

// Surface is embedded.
type Surface struct {
	// +default=ref(Large)
	Texture string `json:"texture,omitempty" protobuf:"bytes,1,opt,name=texture"`
}

// BallSpec says how.
type BallSpec struct {
	// +default=3
	Bounces *int32 `json:"bounces,omitempty" protobuf:"varint,1,opt,name=bounces"`
	// +listType=set
	Colours []Colour `json:"colours,omitempty" protobuf:"bytes,2,rep,name=colours,casttype=Colour"`
	Filling *string `json:"filling" protobuf:"bytes,3,opt,name=filling"`
	MadeAt metav1.Time `json:"madeAt,omitempty" protobuf:"bytes,4,opt,name=madeAt"`
	Owners Owners `json:"owners,omitempty" protobuf:"bytes,5,rep,name=owners"`
	Size Size `json:"size,omitempty" protobuf:"bytes,6,opt,name=size"`
	Surface `json:",inline" protobuf:"bytes,7,opt,name=surface"`
	hidden string
	Unpublished string `json:"-"`
}
