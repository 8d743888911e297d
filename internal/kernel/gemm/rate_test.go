package gemm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/gemm"
)

func TestPairRateIsThatOfAKernel(t *testing.T) {
	if _, ok := gemm.PairKernel(); ok {
		rate := gemm.PairRate()
		assert.True(t, rate > 0.05 && rate < 20, "%v", rate)
	}
	defer cpufeat.Disable(cpufeat.BF16)()
	assert.Zero(t, gemm.PairRate(), "without the instruction")
}
