package torchtitan_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/backends/torchtitan"
	"github.com/primus-fl/primus/runtime/train/traintest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const params = "trainable: false\nsink_level: null\ntraining:\n  steps: 10\nmodel:\n  name: llama3\n"

func TestPlan(t *testing.T) {
	l := &traintest.Lab{Factory: torchtitan.Factory(), Params: params}
	l.BackendPath = tree(t, nil)
	venv := traintest.Tree(t, map[string]string{"lib/python3.12/site-packages/torchtitan-0.2.2.dist-info/METADATA": "Name: torchtitan\nVersion: 0.2.2\n"})
	p, err := l.Plan(t)
	require.NoError(t, err)
	assert.Empty(t, p.Version, "a bare tree states none")
	l.Env = map[string]string{"VIRTUAL_ENV": venv}
	p, err = l.Plan(t)
	require.NoError(t, err)
	assert.Equal(t, "0.2.2", p.Version)
	assert.Equal(t, []string{"trainable"}, p.Added)
	got, _ := traintest.Argument(p, "training.steps")
	assert.Equal(t, "10", got)
}

func TestFaults(t *testing.T) {
	_, err := (&traintest.Lab{Factory: torchtitan.Factory(), Params: "training:\n  steps: many\n"}).Plan(t)
	assert.ErrorContains(t, err, `training.steps: given string "many", want a whole number`)
}
