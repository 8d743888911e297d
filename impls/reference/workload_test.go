package reference_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func equal(tensor.DType) tensor.Tolerance { return tensor.Tolerance{} }

func TestWorkloads(t *testing.T) {
	t.Parallel()
	serial := opregistry.NewExec(nil, 0)
	for _, impl := range reference.Source().Impls {
		t.Run(impl.Op.Name(), func(t *testing.T) {
			t.Parallel()
			subject := opstest.Subject{Impl: impl}
			least, err := opscases.All().Smallest(tensor.F32, subject)
			require.NoError(t, err)
			if impl.Op == collective.Barrier || impl.Op == collective.Broadcast { // a job of one rank writes nothing
				require.Empty(t, least)
				return
			}
			require.Len(t, least, 1)
			most, err := opscases.All().Largest(tensor.F32, subject, subject)
			require.NoError(t, err)
			require.Len(t, most, 2)
			assert.Equal(t, most[0].Case, most[1].Case)
			assert.Positive(t, least[0].Bytes)
			assert.GreaterOrEqual(t, most[0].Bytes, least[0].Bytes)
			for range 3 { // operands that are updated in place are restored
				_, err := most[0].Run(serial)
				require.NoError(t, err)
				require.NoError(t, most[0].Check(most[1], equal))
			}
		})
	}
}

func TestWorkloadsFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	right := function(t, norm.RMSNormFwd)
	subject := func(run opregistry.Func[norm.RMSNormFwdArgs]) opstest.Subject {
		return opstest.Subject{Impl: opregistry.Impl{Op: norm.RMSNormFwd, ID: "vendor.acme", Run: run}}
	}
	sound := subject(right)
	calls := 0
	wrong := subject(func(x *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		err := right(x, a)
		if calls++; calls > 1 {
			a.RSigma.Set(7, 0)
		}
		return err
	})
	work, err := opscases.All().Largest(tensor.F32, wrong, sound)
	require.NoError(t, err)
	require.NoError(t, work[0].Check(work[1], equal))
	_, err = work[0].Run(opregistry.NewExec(nil, 0))
	require.NoError(t, err)
	require.ErrorContains(t, work[0].Check(work[1], equal), `operand "rsigma" differs in 1 of 2 elements: element 0`)

	broken := errors.New("broken")
	_, err = opscases.All().Smallest(tensor.F32, sound, subject(func(*opregistry.Exec, norm.RMSNormFwdArgs) error { return broken }))
	require.ErrorIs(t, err, broken)
	_, err = opscases.All().Smallest(tensor.F32, subject(func(*opregistry.Exec, norm.RMSNormFwdArgs) error { panic("at once") }))
	require.ErrorContains(t, err, "at once")

	picky := subject(func(x *opregistry.Exec, a norm.RMSNormFwdArgs) error {
		if a.Input.NumElements() > 100 || a.Input.DType() != tensor.F32 {
			return opregistry.Unsupported("large")
		}
		return right(x, a)
	})
	work, err = opscases.All().Largest(tensor.F32, sound, picky)
	require.NoError(t, err)
	require.Len(t, work, 2)
	assert.InDelta(t, 4*24*8, work[0].Bytes, 200, "the largest that both serve")
	work, err = opscases.All().Largest(tensor.BF16, picky, sound)
	require.NoError(t, err)
	assert.Nil(t, work)

	_, err = opscases.All().Largest(tensor.F32)
	require.ErrorContains(t, err, "no subject")
	_, err = opscases.All().Largest(tensor.F32, sound, opstest.Subject{Impl: opregistry.Impl{Op: norm.RMSNormBwd, ID: "x"}})
	require.ErrorContains(t, err, "two impls of one op")
	alien := opregistry.NewOp("alien", opregistry.Schema[struct{}]{})
	_, err = opscases.All().Largest(tensor.F32, opstest.Subject{Impl: opregistry.Impl{Op: alien, ID: "x"}})
	require.ErrorContains(t, err, "not in the catalogue")
}
