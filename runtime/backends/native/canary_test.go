package native_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// wrongNorms is a vendor with flagos' rmsnorm, whose forward or backward calls are wrong from the
// tenth on.
func wrongNorms(forward bool) opregistry.Source {
	var calls atomic.Int64
	src := opregistry.Source{Name: "acme"}
	spoil := func(isForward bool, result *tensor.Tensor, err error) error {
		if err == nil && isForward == forward && calls.Add(1) >= 10 {
			tensor.Data[float32](result)[1] += 1
		}
		return err
	}
	for _, impl := range flagos.Source().Impls {
		if impl.Op.Family() != "rmsnorm" {
			continue
		}
		impl.ID, impl.Kind, impl.Vendor = "vendor.acme", opregistry.KindVendor, "acme"
		switch run := impl.Run.(type) {
		case opregistry.Func[norm.RMSNormFwdArgs]:
			impl.Run = opregistry.Func[norm.RMSNormFwdArgs](func(ex *opregistry.Exec, a norm.RMSNormFwdArgs) error {
				return spoil(true, a.Output, run(ex, a))
			})
		case opregistry.Func[norm.RMSNormBwdArgs]:
			impl.Run = opregistry.Func[norm.RMSNormBwdArgs](func(ex *opregistry.Exec, a norm.RMSNormBwdArgs) error {
				return spoil(false, a.DX, run(ex, a))
			})
		case opregistry.Func[norm.RMSNormBwdAddArgs]:
			impl.Run = opregistry.Func[norm.RMSNormBwdAddArgs](func(ex *opregistry.Exec, a norm.RMSNormBwdAddArgs) error {
				return spoil(false, a.DX, run(ex, a))
			})
		}
		src.Impls = append(src.Impls, impl)
	}
	return src
}

// A canary that becomes wrong is withdrawn, and the losses are those of the run without it.
func TestWrongCanaryChangesNoLoss(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "without"))
	want := l.metrics("without")
	for name, forward := range map[string]bool{"forward": true, "backward": false} {
		t.Run(name, func(t *testing.T) {
			l.sources = []opregistry.Source{wrongNorms(forward)}
			l.policy = func(p *oppolicy.Policy) {
				require.NoError(t, p.SetCanary("rmsnorm_fwd=vendor:acme@0.3", "the test"))
			}
			require.NoError(t, l.train(t.Context(), name))
			assert.Equal(t, want, l.metrics(name))
			trials := l.manager.Canaries()
			require.Len(t, trials, 1)
			assert.Equal(t, opmanager.CanaryWithdrawn, trials[0].State, trials[0])
			assert.Len(t, l.manager.Quarantines(), 1)
		})
	}
}
