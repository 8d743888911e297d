package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/ops/attention"
)

func TestEnumNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "no_mask", attention.NoMask.String())
	assert.Equal(t, "causal", attention.CausalMask.String())
	assert.Equal(t, "causal_bottom_right", attention.CausalBottomRightMask.String())
	assert.Equal(t, "mask_type(9)", attention.MaskType(9).String())
	assert.Equal(t, "sbhd", attention.SBHD.String())
	assert.Equal(t, "bshd", attention.BSHD.String())
	assert.Equal(t, "thd", attention.THD.String())
	assert.Equal(t, "qkv_format(9)", attention.QKVFormat(9).String())
}
