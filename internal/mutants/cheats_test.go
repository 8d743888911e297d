package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// An impl that returns at once and computes later looks fast. It is refused, and the kit says why.
func TestWorkThatIsPutOff(t *testing.T) {
	if race.Enabled {
		t.Skip("the impl is a data race")
	}
	t.Parallel()
	trusted := right(norm.ResidualAdd)
	run := trusted.Run.(opregistry.Func[norm.ResidualAddArgs])
	late := trusted
	late.Run = opregistry.Func[norm.ResidualAddArgs](func(_ *opregistry.Exec, a norm.ResidualAddArgs) error {
		time.AfterFunc(20*time.Millisecond, func() { _ = run(opregistry.NewExec(nil, 0), a) })
		return nil
	})
	results, err := opscases.All().Verify(late, trusted, opstest.WithDTypes(tensor.F32))
	require.NoError(t, err)
	named := slices.ContainsFunc(results[0].Failures, func(f opstest.Failure) bool {
		return strings.Contains(f.Reason, "was written to after the impl had returned: it puts work off")
	})
	assert.True(t, named, "%d failures", len(results[0].Failures))

	wrong := trusted
	wrong.Run = opregistry.Func[norm.ResidualAddArgs](func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil })
	results, err = opscases.All().Verify(wrong, trusted, opstest.WithDTypes(tensor.F32))
	require.NoError(t, err)
	require.NotEmpty(t, results[0].Failures)
	for _, f := range results[0].Failures {
		assert.NotContains(t, f.Reason, "puts work off", "it never writes")
	}
}
