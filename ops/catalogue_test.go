package ops_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
)

func TestAll(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	families := map[string][]bool{}
	for _, op := range ops.All() {
		assert.False(t, names[op.Name()], "%s twice", op.Name())
		names[op.Name()] = true
		assert.NotEmpty(t, op.Doc(), op.Name())
		assert.NotEmpty(t, op.Params(), op.Name())
		if op.Family() != "" {
			families[op.Family()] = append(families[op.Family()], op.Forward())
		}
	}
	for _, other := range foreign.Ops() {
		assert.False(t, names[strings.ToLower(other.Name)], "%s is dispatched", other.Name)
	}
	for family, forward := range families {
		assert.Greater(t, len(forward), 1, "family %s: a backward op", family)
		assert.Len(t, slices.DeleteFunc(forward, func(f bool) bool { return !f }), 1, "family %s: one forward op", family)
	}
	assert.NoError(t, opregistry.NewRegistry().Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
}
