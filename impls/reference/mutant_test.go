package reference_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// mutant is an impl with one mistake that is known from real libraries. The conformance kit must
// find each of them.
type mutant struct {
	name string
	test func(t *testing.T)
}

// mutate returns a mutant of the reference. The kit calls wrong with the right function and the
// arguments of a call.
func mutate[A any](name string, op *opregistry.Op[A], d tensor.DType, wrong func(right opregistry.Func[A], x *opregistry.Exec, a A) error) mutant {
	return mutant{name: op.Name() + ":" + name, test: func(t *testing.T) {
		right := function(t, op)
		impl := opregistry.Impl{Op: op, ID: "wrong", Kind: opregistry.KindReference, Run: func(x *opregistry.Exec, a A) error { return wrong(right, x, a) }}
		oracle := impl
		oracle.Run = right
		opscases.All().Run(t, impl, oracle, opstest.WithDTypes(d))
	}}
}

// each replaces the elements of a tensor.
func each(x *tensor.Tensor, f func(float64) float64) error {
	v := x.Float64s()
	for i := range v {
		v[i] = f(v[i])
	}
	return x.SetFloat64s(v)
}

// rounded rounds v to the dtype of x, as between two steps of a computation.
func rounded(x *tensor.Tensor, v []float64) ([]float64, error) {
	err := x.SetFloat64s(v)
	return x.Float64s(), err
}

const mutantsEnv = "REFERENCE_RUN_MUTANTS"

// TestMutantsAreFound runs itself in a child process, where the mutants fail.
func TestMutantsAreFound(t *testing.T) {
	if os.Getenv(mutantsEnv) != "" {
		for _, m := range mutants() {
			t.Run(m.name, m.test)
		}
		return
	}
	if underRaceDetector {
		t.Skip("the mutants share nothing: the race detector would only slow them down")
	}
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestMutantsAreFound$", "-test.v", "-test.short")
	cmd.Env = append(os.Environ(), mutantsEnv+"=1")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the child process has to fail")
	for _, m := range mutants() {
		name := strings.ReplaceAll(m.name, " ", "_")
		assert.Contains(t, string(output), "\n    --- FAIL: TestMutantsAreFound/"+name+" (", "mutant %s", m.name)
	}
	for _, reason := range []string{
		"is not what the oracle computes", "although the op only reads it", "guard elements were written to, the first at a gap, ",
		"guard elements were written to, the first at 1 element after the last", "before the impl declined", "impl \"wrong\" declined all ",
		"the impl failed: no strides", "panic: empty", "differs with one worker and with several", "differs alone and beside other calls",
		"declined a case that it must serve", "is not that of central differences",
	} {
		assert.Contains(t, string(output), reason)
	}
	assert.NotContains(t, string(output), "the case itself is wrong")
	assert.NotContains(t, string(output), "the oracle:")
}
