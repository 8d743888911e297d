package flagos_test

import (
	"testing"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry/opstest"
)

func TestConformance(t *testing.T) {
	opstest.RunAll(t, flagos.Source(), reference.Source())
}

func TestGradients(t *testing.T) {
	opstest.GradCheckAll(t, flagos.Source(), reference.Source())
}
