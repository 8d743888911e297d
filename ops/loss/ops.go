package loss

import "github.com/primus-fl/primus/opregistry"

// Ops returns the handles of the ops of this package.
func Ops() []opregistry.Handle {
	return []opregistry.Handle{
		CrossEntropyFwd, CrossEntropyBwd, LinearCrossEntropyFwd, LinearCrossEntropyBwd,
	}
}
