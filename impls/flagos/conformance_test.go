package flagos_test

import (
	"testing"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/ops/opscases"
)

func TestConformance(t *testing.T) {
	opscases.All().RunAll(t, flagos.Source(), reference.Source())
}

func TestGradients(t *testing.T) {
	opscases.All().GradCheckAll(t, flagos.Source(), reference.Source())
}
