package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
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

// An impl that keeps results by the whole content of operands is right and looks fast, because
// benchmarks repeat a call. Its results are kept, and the workload says so.
func TestKeptResults(t *testing.T) {
	t.Parallel()
	trusted := right(gemm.GenericGemm)
	run := function(gemm.GenericGemm)
	kept := map[string][]byte{}
	cheat := trusted
	cheat.ID = "cheat"
	cheat.Run = opregistry.Func[gemm.GenericGemmArgs](func(x *opregistry.Exec, a gemm.GenericGemmArgs) error {
		var key strings.Builder
		for _, o := range gemm.GenericGemm.At(&a).Operands() {
			key.WriteString(o.Tensor.String())
			if o.Access == opregistry.AccessRead {
				key.Write(memory(o.Tensor))
			}
		}
		if old, ok := kept[key.String()]; ok && !a.Accumulate {
			copy(memory(a.D), old)
			return nil
		}
		err := run(x, a)
		kept[key.String()] = slices.Clone(memory(a.D))
		return err
	})
	for _, impl := range []opregistry.Impl{trusted, cheat} {
		work, err := opscases.Gemm().Largest(tensor.F32, opstest.Subject{Impl: impl})
		require.NoError(t, err)
		reason, err := work[0].Kept(opregistry.NewExec(nil, 0))
		require.NoError(t, err)
		assert.Equal(t, impl.ID == "cheat", strings.Contains(reason, "it keeps results"), "%s: %s", impl.ID, reason)
	}
}

// An impl that knows a call again by some elements of its operands answers with old results where
// another element has changed.
func TestResultsKeptBySomeElements(t *testing.T) {
	t.Parallel()
	trusted := right(norm.ResidualAdd)
	run := function(norm.ResidualAdd)
	kept := map[string][]byte{}
	cheat := trusted
	cheat.Run = opregistry.Func[norm.ResidualAddArgs](func(x *opregistry.Exec, a norm.ResidualAddArgs) error {
		var key strings.Builder
		for _, o := range norm.ResidualAdd.At(&a).Operands() {
			fmt.Fprint(&key, o.Tensor, o.Tensor.Pointer())
			if v := o.Tensor.Float64s(); o.Access == opregistry.AccessRead && len(v) > 0 {
				for i := 0; i < len(v); i += 1 + len(v)/16 {
					fmt.Fprint(&key, " ", v[i])
				}
				fmt.Fprint(&key, " ", v[len(v)-1])
			}
		}
		if old, ok := kept[key.String()]; ok {
			copy(memory(a.Output), old)
			return nil
		}
		err := run(x, a)
		kept[key.String()] = slices.Clone(memory(a.Output))
		return err
	})
	results, err := opscases.All().Verify(cheat, trusted, opstest.WithDTypes(tensor.F32))
	require.NoError(t, err)
	remembers := func(f opstest.Failure) bool { return strings.Contains(f.Case, "after_other_calls/") }
	assert.True(t, slices.ContainsFunc(results[0].Failures, remembers), "%d failures", len(results[0].Failures))
}
