package opregistry_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
)

func TestOptionalFloat(t *testing.T) {
	t.Parallel()
	var left opregistry.OptionalFloat
	assert.InDelta(t, 3, left.Or(3), 0)
	assert.InDelta(t, 0, opregistry.Float(0).Or(3), 0)
	assert.InDelta(t, -1.5, opregistry.Float(-1.5).Or(3), 0)
}
