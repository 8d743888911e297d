package optim

import (
	"errors"
	"fmt"
)

// BatchRamp is a global batch size that grows, [start, increment, samples], with the meaning of
// Megatron's rampup_batch_size: it begins with start and grows by increment in equal parts of the
// first samples, to the full size. Empty means the full size throughout.
type BatchRamp []int

// Validate returns what is wrong with the ramp to a full size. Batches are multiples of unit.
func (r BatchRamp) Validate(full, unit int) error {
	if len(r) == 0 {
		return nil
	}
	f := faults{}
	const key = "rampup_batch_size"
	if f.check(len(r) == 3, key, fmt.Sprint([]int(r)), "three numbers: the first batch size, its increment and the samples of the ramp"); len(f) > 0 {
		return errors.Join(f...)
	}
	start, increment, samples := r[0], r[1], r[2]
	f.check(start >= unit && start <= full && start%unit == 0, key+"[0]", start, fmt.Sprintf("a multiple of %d (micro_batch_size times ranks) up to global_batch_size %d", unit, full))
	f.check(increment >= 1 && increment%unit == 0 && (full-start)%increment == 0, key+"[1]", increment,
		fmt.Sprintf("a multiple of %d that divides global_batch_size %d less the first size %d", unit, full, start))
	f.check(samples >= 1, key+"[2]", samples, "a number >= 1")
	return errors.Join(f...)
}

// At returns the batch size after so many samples, of a ramp to the full size that Validate
// accepts.
func (r BatchRamp) At(consumed uint64, full int) int {
	if len(r) == 0 || r[0] == full || consumed > uint64(r[2]) {
		return full
	}
	steps := float64((full - r[0]) / r[1])
	return r[0] + r[1]*int(float64(consumed)/(float64(r[2])/steps))
}
