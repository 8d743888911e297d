package native_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/vendors/opencl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// callTap is a Tap that keeps what is called.
type callTap struct {
	mu   sync.Mutex
	seen map[string]string // ops, by call
}

// Begin implements opmanager.Tap.
func (c *callTap) Begin(call opmanager.TappedCall) func(opmanager.ImplInfo, error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[call.Op.Name()+" "+call.Args.Describe()] = call.Op.Name()
	return nil
}

// The calls that a run makes are those that were known before.
func TestCallsAreKnownBefore(t *testing.T) {
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			host := cpu.New()
			defer host.Close()
			checkCalls(t, newLab(t), host, name, overrides)
		})
	}
}

// The same goes for a run on a device.
func TestCallsOnADeviceAreKnownBefore(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	dev := opencltest.Backend(t)
	for name, overrides := range families() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.sources, l.device = []opregistry.Source{opencl.Source()}, dev
			checkCalls(t, l, dev, name, overrides)
		})
	}
}

// A policy that leaves a call on a device without an impl is refused before the first step: here
// one that copies no operands to the host, where the only impls left are.
func TestPolicyOnADeviceIsRefusedAtTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		open func(testing.TB) device.Backend
		op   string // the first one that nobody serves
	}{
		"without impls": {func(testing.TB) device.Backend { return fardevice.New(0) }, "copy_to_kv_cache"},
		"opencl":        {func(t testing.TB) device.Backend { return opencltest.Backend(t) }, "generic_gemm"},
	} {
		t.Run(name, func(t *testing.T) {
			l, began := newLab(t), false
			l.sources, l.device = []opregistry.Source{opencl.Source()}, tt.open(t)
			l.observer = onStep{do: func(backend.Step) { began = true }}
			l.policy = func(p *oppolicy.Policy) {
				p.CrossDevice = oppolicy.CrossDeviceError
				require.NoError(t, p.SetPerOp("generic_gemm=reference", "test"))
			}
			err := l.train(t.Context(), "refused", "train_iters=1")
			require.ErrorContains(t, err, fmt.Sprintf("it leaves calls without an impl: op %q", tt.op))
			assert.ErrorContains(t, err, "the policy copies no operands (cross_device=error")
			assert.False(t, began, "the run is refused before its first step")
			l.policy = func(p *oppolicy.Policy) { require.NoError(t, p.SetPerOp("generic_gemm=reference", "test")) }
			require.NoError(t, l.train(t.Context(), "copied", "train_iters=1"))
			assert.True(t, began)
			assert.NotContains(t, l.log.String(), "is not known before")
		})
	}
}

func checkCalls(t *testing.T, l *lab, dev device.Backend, name string, overrides []string) {
	made := &callTap{seen: map[string]string{}}
	l.model, l.taps = name, []opmanager.Tap{made}
	overrides = append(slices.Clone(overrides), "train_iters=2", "eval_interval=1", "save_interval=1", "sample_prompt=8 tokens", "clip_grad=1")
	require.NoError(t, l.train(t.Context(), "run", overrides...))

	module, err := l.experiment("run", overrides...).Module("pre_trainer")
	require.NoError(t, err)
	pool := parallel.New(1)
	defer pool.Close()
	manager := opmanager.New(l.registry(), oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(pool, 0)})
	defer manager.Close()
	expected, _, err := native.ExpectedCalls(module, manager, dev, nil)
	require.NoError(t, err)
	for _, c := range expected {
		delete(made.seen, c.String())
	}
	// Their sizes depend on the experts that the router chooses.
	for _, op := range []string{"te_general_grouped_gemm", "swiglu", "dswiglu"} {
		if name == "moe_8x3M" {
			maps.DeleteFunc(made.seen, func(_, of string) bool { return of == op })
		}
	}
	assert.Empty(t, slices.Sorted(maps.Keys(made.seen)), "calls that were not known before")
}
