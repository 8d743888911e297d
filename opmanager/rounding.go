package opmanager

import (
	"math"
	"math/rand/v2"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// An impl rounds as if its operands had been off by about roundingUnit. Its results may be off by
// roundingFactor times what that changes.
const (
	roundingUnit   = 0x1p-23
	roundingFactor = 16
	roundingTrials = 3
)

// Rounding returns how far a result of a call may be from that of the reference because the call
// magnifies rounding, as one does in which large terms cancel: run, which runs the reference,
// computes it again with operands that are a little off. want is the result without that, of
// operand number i of before, which has the operands as they were before the call.
func Rounding(before opregistry.Call, i int, want []float64, run func(opregistry.Call) error) float64 {
	largest := 0.0
	for trial := range uint64(roundingTrials) {
		largest = max(largest, disturb(before, i, want, run, rand.New(rand.NewPCG(1, trial))))
	}
	return largest
}

// disturb is one trial of Rounding.
func disturb(before opregistry.Call, i int, want []float64, run func(opregistry.Call) error, random *rand.Rand) float64 {
	unit := roundingUnit
	off, err := argcopy.Replace(before, func(t *tensor.Tensor) (*tensor.Tensor, error) {
		t, err := argcopy.Tensor(t)
		if err != nil || !t.DType().IsFloat() {
			return t, err
		}
		step := unitOf(t.DType())
		unit = max(unit, step)
		values := t.Float64s()
		for n := range values {
			values[n] *= 1 + step*float64(2*random.IntN(2)-1)
		}
		return t, t.SetFloat64s(values)
	})
	if err != nil || run(off) != nil {
		return 0
	}
	largest := 0.0
	for n, v := range off.Operands()[i].Tensor.Float64s() {
		if d := math.Abs(v - want[n]); d > largest && !math.IsInf(d, 0) {
			largest = d
		}
	}
	return roundingFactor * largest * roundingUnit / unit
}

// unitOf returns the relative distance of numbers of a dtype, at least roundingUnit.
func unitOf(d tensor.DType) float64 {
	bits := map[tensor.DType]int{tensor.F16: 10, tensor.BF16: 7, tensor.F8E4M3: 3, tensor.F8E5M2: 2} // of the fraction
	if n, narrow := bits[d]; narrow {
		return math.Ldexp(1, -n)
	}
	return roundingUnit
}
