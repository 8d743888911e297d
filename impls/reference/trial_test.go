package reference_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func TestTrials(t *testing.T) {
	t.Parallel()
	src := reference.Source()
	for _, impl := range src.Impls {
		t.Run(impl.Op.Name(), func(t *testing.T) {
			t.Parallel()
			subject := opstest.Subject{Impl: impl}
			if forward, ok := opstest.Forward(src, impl); ok {
				subject.Forward = &forward
			}
			var cases []string
			found, err := opscases.All().Try(subject, opstest.WithProgress(func(name string) { cases = append(cases, name) }))
			require.NoError(t, err)
			assert.Empty(t, found.Failure)
			assert.Empty(t, found.Stray)
			assert.Positive(t, found.Served)
			assert.Len(t, cases, found.Served+found.Declined)
			assert.LessOrEqual(t, found.Served, 16)
		})
	}
}

func TestTrialsFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	right := function(t, norm.RMSNormFwd)
	try := func(run opregistry.Func[norm.RMSNormFwdArgs]) opstest.Trial {
		found, err := opscases.All().Try(opstest.Subject{Impl: opregistry.Impl{Op: norm.RMSNormFwd, ID: "vendor.acme", Run: run}})
		require.NoError(t, err)
		return found
	}
	all := try(right)
	assert.Equal(t, opstest.Trial{Served: 16}, all)

	found := try(func(*opregistry.Exec, norm.RMSNormFwdArgs) error { return opregistry.Unsupported("never") })
	assert.Equal(t, opstest.Trial{Declined: 64}, found)

	picky := try(func(x *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		if a.Input.DType() != tensor.F32 || !a.Input.IsContiguous() {
			return opregistry.Unsupported("not yet")
		}
		return right(x, a)
	})
	assert.Equal(t, 4, picky.Served)
	assert.Empty(t, picky.Failure)

	found = try(func(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		if a.Input.DType() == tensor.BF16 {
			return errors.New("no memory")
		}
		return nil
	})
	assert.Equal(t, 12, found.Served)
	assert.Regexp(t, `^case bf16/.*: no memory$`, found.Failure)
	assert.Empty(t, found.Stray)

	found = try(func(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		a.Output.Set(7, make([]int, len(a.Output.Shape()))...)
		return opregistry.Unsupported("too late")
	})
	assert.Regexp(t, `^case f32/.*: operand "output" was written to before the impl declined$`, found.Stray)

	found = try(func(*opregistry.Exec, norm.RMSNormFwdArgs) error { panic("at once") })
	assert.Contains(t, found.Failure, "panic: at once")

	found = try(func(x *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		a.Weight.Set(7, 0)
		return right(x, a)
	})
	assert.Regexp(t, `^case f32/.*: operand "weight" was written to, although the op only reads it$`, found.Stray)
	assert.Empty(t, found.Failure)

	forward := opregistry.Impl{Op: norm.RMSNormFwd, ID: "vendor.acme", Run: opregistry.Func[norm.RMSNormFwdArgs](func(*opregistry.Exec, norm.RMSNormFwdArgs) error {
		return opregistry.Unsupported("never")
	})}
	backward := opregistry.Impl{Op: norm.RMSNormBwd, ID: "vendor.acme", Run: function(t, norm.RMSNormBwd)}
	found, err := opscases.All().Try(opstest.Subject{Impl: backward, Forward: &forward})
	require.NoError(t, err)
	assert.Zero(t, found.Served)
	assert.Positive(t, found.Declined, "there is nothing to read")

	_, err = opscases.All().Try(opstest.Subject{})
	require.ErrorContains(t, err, "without an op")
	_, err = opscases.All().Try(opstest.Subject{Impl: opregistry.Impl{Op: norm.RMSNormFwd, ID: "vendor.acme", Run: 7}})
	require.ErrorContains(t, err, "given Run of type int")
	alien := opregistry.NewOp("alien", opregistry.Schema[struct{}]{})
	found, err = opscases.All().Try(opstest.Subject{Impl: opregistry.Impl{Op: alien, ID: "vendor.acme"}})
	require.NoError(t, err)
	assert.Zero(t, found)
}
