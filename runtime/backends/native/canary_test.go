package native_test

import (
	"math"
	"strings"
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

// wrongNorms is a vendor with flagos' rmsnorm, whose forward or backward calls are wrong from one
// on.
func wrongNorms(forward bool, from int64) opregistry.Source {
	var calls atomic.Int64
	src := opregistry.Source{Name: "acme"}
	spoil := func(isForward bool, result *tensor.Tensor, err error) error {
		if err == nil && isForward == forward && calls.Add(1) >= from {
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
			l.sources = []opregistry.Source{wrongNorms(forward, 10)}
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

// A resumed run goes on with the verdicts on canaries that the checkpoint has, here with that on an
// impl that was wrong.
func TestVerdictsOnCanariesAreInCheckpoints(t *testing.T) {
	for _, state := range []opmanager.CanaryState{opmanager.CanaryWithdrawn, opmanager.CanaryPromoted} {
		t.Run(string(state), func(t *testing.T) {
			l := newLab(t)
			l.policy = func(p *oppolicy.Policy) {
				require.NoError(t, p.SetCanary("rmsnorm_fwd=vendor:acme@0.3", "the test"))
			}
			l.sources = []opregistry.Source{wrongNorms(true, 10)}
			require.NoError(t, l.train(t.Context(), "run", "train_iters=8"))
			first := l.manager.Canaries()
			require.Len(t, first, 1)
			require.Equal(t, opmanager.CanaryWithdrawn, first[0].State)
			serves := "default.flagos"
			if state == opmanager.CanaryPromoted { // a promotion depends on times
				serves = "vendor.acme"
				promoted := strings.NewReplacer(`"state": "withdrawn"`, `"state": "promoted"`, `"wrong": true,`, "")
				resave(t, l.path("run", "checkpoints"), func(_, text string) string { return promoted.Replace(text) })
			}
			l.sources = []opregistry.Source{wrongNorms(true, math.MaxInt64)}
			require.NoError(t, l.train(t.Context(), "run", "train_iters=10"))
			assert.Contains(t, l.log.String(), "resuming from checkpoint")
			again := l.manager.Canaries()
			require.Len(t, again, 1)
			assert.Equal(t, state, again[0].State)
			assert.Equal(t, first[0].Calls, again[0].Calls, "it is not tried again")
			e, err := l.manager.Explain("rmsnorm_fwd")
			require.NoError(t, err)
			assert.Equal(t, serves, e.Selected)
		})
	}
}
