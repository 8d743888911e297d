//go:build race

package onednn

import (
	"runtime"

	"github.com/primus-fl/primus/tensor"
)

// annotate tells the race detector what the library, which it cannot see, is about to
// read and write.
func annotate(read, written []*tensor.Tensor) {
	for _, t := range read {
		runtime.RaceReadRange(t.Pointer(), t.DType().Size()*t.NumElements())
	}
	for _, t := range written {
		if t != nil {
			runtime.RaceWriteRange(t.Pointer(), t.DType().Size()*t.NumElements())
		}
	}
}
