package gemm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/gemm"
)

func TestPairRateIsThatOfAKernel(t *testing.T) {
	if _, ok := gemm.PairKernel(); ok {
		assert.Positive(t, gemm.PairRate())
	}
	defer cpufeat.Disable(cpufeat.BF16)()
	defer cpufeat.Disable(cpufeat.NEONBF16)()
	assert.Zero(t, gemm.PairRate(), "without the instruction")
}
