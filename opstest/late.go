package opstest

import (
	"bytes"
	"time"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// lateness is how long the kit waits for an impl that writes after it has returned.
const lateness = time.Second

// writesLate reports whether a wrong result is no longer what it was when the impl had returned, or
// changes soon. It waits once in a run, and not when the first failure ends the run.
func (r *runner) writesLate(x *tensor.Tensor, returned []byte) bool {
	if r.waited || r.cfg.untilFailure {
		return false
	}
	r.waited = true
	for end := time.Now().Add(lateness); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !bytes.Equal(returned, tensortest.Bytes(x)) {
			return true
		}
	}
	return false
}
