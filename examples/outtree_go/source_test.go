package acme_test

import (
	"testing"

	acme "example.com/acme/primus-ops"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	opscases.All().RunAll(t, acme.Source(), reference.Source())
}

func TestSourceRegisters(t *testing.T) {
	t.Parallel()
	require.NoError(t, opregistry.NewRegistry().Register(acme.Source()))
}
