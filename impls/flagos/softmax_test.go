package flagos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestMaskedSoftmaxOfSpecialRows(t *testing.T) {
	tests := []struct {
		name               string
		logits, mask, want []float64
	}{
		{"masked throughout", []float64{1, nan, inf}, []float64{1, 1, 1}, []float64{0, 0, 0}},
		{"NaN beside masked ones", []float64{1, nan, 2}, []float64{1, 0, 1}, []float64{nan, nan, nan}},
		{"-Inf beside masked ones", []float64{1, -inf, 2}, []float64{1, 0, 1}, []float64{0, 0, 0}},
		{"the logit of masked ones", []float64{1, -10000, 2}, []float64{1, 0, 1}, []float64{0, 0, 0}},
		{"one is seen", []float64{1, -9000, 2}, []float64{1, 0, 1}, []float64{0, 1, 0}},
		{"+Inf", []float64{1, inf, 2}, []float64{1, 0, 1}, []float64{nan, nan, nan}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMaker(t, 1, false)
			a := softmax.ScaledMaskedSoftmaxForwardArgs{
				Input: set(t, m.dense(tensor.F32, 1, 1, 1, 3), tt.logits...), Mask: set(t, m.dense(tensor.U8, 1, 1, 1, 3), tt.mask...),
				Output: m.dense(tensor.F32, 1, 1, 1, 3), ScaleFactor: 1,
			}
			require.NoError(t, call(t, softmax.ScaledMaskedSoftmaxForward, a))
			tensortest.CloseTo(t, tt.want, a.Output, tensortest.Tolerance{})
		})
	}
}
