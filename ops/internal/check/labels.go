package check

import (
	"strconv"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Labels checks that every index of a contiguous tensor lies in [0, limit) or is the ignored one.
// Those of a tensor on a device are not read: an impl there leaves out what is outside.
func Labels(c *opregistry.Check, name string, t *tensor.Tensor, limit, ignore int, hasIgnore bool) {
	if !t.OnHost() {
		return
	}
	bad, at := 0, -1
	if t.DType() == tensor.I32 {
		for i, v := range tensor.Data[int32](t) {
			if uint(v) >= uint(limit) && !(hasIgnore && int(v) == ignore) {
				bad, at = int(v), i
				break
			}
		}
	} else {
		for i, v := range tensor.Data[int64](t) {
			if uint64(v) >= uint64(limit) && !(hasIgnore && int(v) == ignore) {
				bad, at = int(v), i
				break
			}
		}
	}
	if at >= 0 {
		c.Fail(name, "values in [0, "+strconv.Itoa(limit)+")", "%d at element %d", bad, at)
	}
}
