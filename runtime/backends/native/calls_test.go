package native_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
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
		t.Run(name, func(t *testing.T) { checkCalls(t, name, overrides) })
	}
}

func checkCalls(t *testing.T, name string, overrides []string) {
	l, made := newLab(t), &callTap{seen: map[string]string{}}
	l.model, l.taps = name, []opmanager.Tap{made}
	overrides = append(slices.Clone(overrides), "train_iters=2", "eval_interval=1", "save_interval=1", "sample_prompt=8 tokens", "clip_grad=1")
	require.NoError(t, l.train(t.Context(), "run", overrides...))

	module, err := l.experiment("run", overrides...).Module("pre_trainer")
	require.NoError(t, err)
	pool := parallel.New(1)
	defer pool.Close()
	manager := opmanager.New(l.registry(), oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(pool, 0)})
	defer manager.Close()
	host := cpu.New()
	defer host.Close()
	expected, _, err := native.ExpectedCalls(module, manager, host, nil)
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
