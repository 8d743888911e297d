package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/opscases"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(&out))
	assert.Equal(t, "[0.8485278 1.1313704 0.848528 1.1313708]\n", out.String())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	opscases.All().RunAll(t, source(), reference.Source())
}
