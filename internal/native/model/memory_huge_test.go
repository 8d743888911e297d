package model_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is far too large is counted like anything else; what no address reaches is an error.
func TestMemoryOfTheHuge(t *testing.T) {
	t.Parallel()
	mgr := newManager(t, opregistry.KindFlagos)
	cfg := tiny(false)
	cfg.NumLayers = 1_000_000_000
	assert.Greater(t, cfg.WeightBytes(), 1e13)
	got, err := model.ActivationBytes(cfg, model.Part{}, mgr, 2)
	require.NoError(t, err)
	assert.Greater(t, got, 1e13)
	cfg.HiddenSize = 1 << 40
	assert.Greater(t, cfg.WeightBytes(), 1e33)
	_, err = model.ActivationBytes(cfg, model.Part{}, mgr, 2)
	assert.ErrorContains(t, err, "want a size that fits in an int")
}
