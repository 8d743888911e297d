package ops_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

func TestAll(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	families := map[string][]bool{}
	for _, op := range ops.All() {
		assert.False(t, names[op.Name()], "%s twice", op.Name())
		names[op.Name()] = true
		assert.NotEmpty(t, op.Doc(), op.Name())
		if op.Family() != "" {
			families[op.Family()] = append(families[op.Family()], op.Forward())
		}
	}
	assert.Subset(t, ops.All(), ops.Declared())
	for family, forward := range families {
		assert.True(t, forward[0] && !slices.Contains(forward[1:], true) && len(forward) > 1,
			"family %s: one forward op, then those that read what it saves", family)
	}
	assert.NoError(t, opregistry.NewRegistry().Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
}

func TestOptionalFloat(t *testing.T) {
	t.Parallel()
	var left ops.OptionalFloat
	assert.InDelta(t, 3, left.Or(3), 0)
	assert.InDelta(t, 0, ops.Float(0).Or(3), 0)
	assert.InDelta(t, -1.5, ops.Float(-1.5).Or(3), 0)
}

func TestEnumNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "no_mask", ops.NoMask.String())
	assert.Equal(t, "causal", ops.CausalMask.String())
	assert.Equal(t, "causal_bottom_right", ops.CausalBottomRightMask.String())
	assert.Equal(t, "mask_type(9)", ops.MaskType(9).String())
	assert.Equal(t, "sbhd", ops.SBHD.String())
	assert.Equal(t, "bshd", ops.BSHD.String())
	assert.Equal(t, "thd", ops.THD.String())
	assert.Equal(t, "qkv_format(9)", ops.QKVFormat(9).String())
}
