package rankops

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// seen is a sink that keeps what it receives.
type seen struct {
	mu       sync.Mutex
	dispatch backend.RankDispatch
	warnings []string
	changed  chan struct{}
}

func (s *seen) sink() Sink {
	s.changed = make(chan struct{}, 1)
	note := func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return Sink{
		Event: func(rank int, e opmanager.Event) { s.dispatch.OpEvent(rank, e); note() },
		Calls: func(rank int, calls []backend.RankCalls) { s.dispatch.RankCalls(rank, calls); note() },
		Warn: func(text string) {
			s.mu.Lock()
			s.warnings = append(s.warnings, text)
			s.mu.Unlock()
			note()
		},
	}
}

// until waits for a condition, which changes of the sink may bring about.
func (s *seen) until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for !met() {
		select {
		case <-s.changed:
		case <-t.Context().Done():
			require.Fail(t, what)
		case <-time.After(time.Minute):
			require.Fail(t, what)
		}
	}
}

func (s *seen) use(op, impl string) backend.RankUse {
	for _, u := range s.dispatch.Uses() {
		if u.Op == op && u.Impl == impl {
			return u
		}
	}
	return backend.RankUse{}
}

func (s *seen) warned() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.warnings, "\n")
}

// process is an op manager that reports as a process with a rank does.
type process struct {
	*opmanager.Manager
	reporter *Reporter
	add      *opmanager.Bound[norm.ResidualAddArgs]
}

func start(t *testing.T, socket, rank string, more ...opregistry.Source) *process {
	t.Helper()
	registry := opregistry.NewRegistry()
	for _, src := range append([]opregistry.Source{{Name: "catalogue", Ops: ops.All()}, flagos.Source(), reference.Source()}, more...) {
		require.NoError(t, registry.Register(src))
	}
	p := &process{reporter: &Reporter{}}
	p.Manager = opmanager.New(registry, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{p.reporter}})
	t.Cleanup(p.Manager.Close)
	require.NoError(t, p.reporter.Start(t.Context(), socket, rank, p.Manager, func(text string) { t.Log(text) }))
	t.Cleanup(p.reporter.Close)
	var err error
	p.add, err = opmanager.Bind(p.Manager, norm.ResidualAdd)
	require.NoError(t, err)
	return p
}

func (p *process) call(t *testing.T, times int) {
	t.Helper()
	var x [3]*tensor.Tensor
	for i := range x {
		var err error
		x[i], err = tensor.FromSlice([]float32{1, 2})
		require.NoError(t, err)
	}
	for range times {
		require.NoError(t, p.add.Call(norm.ResidualAddArgs{A: x[0], B: x[1], Output: x[2]}))
	}
}

// What processes have called is counted exactly once they have ended, however many managers and
// ranks there are.
func TestCountsAreExact(t *testing.T) {
	var s seen
	c, err := Listen("", s.sink())
	require.NoError(t, err)
	want := 0
	for i := range 6 {
		p := start(t, c.Socket(), fmt.Sprint(i/2))
		p.call(t, 10+i)
		want += 10 + i
		p.reporter.Close()
		p.reporter.Close()
	}
	c.Close()
	u := s.use("residual_add", "default.flagos")
	assert.Equal(t, uint64(want), u.Calls)
	assert.Equal(t, 3, u.Ranks)
	assert.Positive(t, u.Nanos)
	assert.Empty(t, s.warned())
	_, err = os.Stat(c.Socket())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// A policy that is set while processes run serves their next calls; one that they cannot put in
// force is reported, and they keep theirs.
func TestPolicyReachesProcesses(t *testing.T) {
	var s seen
	c, err := Listen(`{"prefer": "reference"}`, s.sink())
	require.NoError(t, err)
	defer c.Close()
	p := start(t, c.Socket(), "1")
	selected := func() string {
		e, err := p.Explain("residual_add")
		require.NoError(t, err)
		return e.Selected
	}
	assert.Equal(t, "reference.go", selected(), "in force before the first call")
	p.call(t, 3)
	c.SetPolicy(`{"prefer": "flagos"}`)
	for deadline := time.Now().Add(time.Minute); selected() != "default.flagos"; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline))
	}
	p.call(t, 4)
	c.SetPolicy(`{"per_op": {"residual_add": ["vendor:nobody"]}}`)
	s.until(t, "the refusal", func() bool { return strings.Contains(s.warned(), "rank 1 keeps its policy: ") })
	assert.Equal(t, "default.flagos", selected())
	p.reporter.Close()
	s.until(t, "the counts", func() bool {
		return s.use("residual_add", "reference.go").Calls == 3 && s.use("residual_add", "default.flagos").Calls == 4
	})
	assert.Equal(t, 1, s.use("residual_add", "default.flagos").Ranks)
}

// Failures, fallbacks and quarantines arrive as often as they happened, with their causes.
func TestEventsArrive(t *testing.T) {
	var s seen
	c, err := Listen(`{"prefer": "vendor", "quarantine": {"failures": 5}}`, s.sink())
	require.NoError(t, err)
	failing := opregistry.Source{Name: "acme", Impls: []opregistry.Impl{{
		Op: norm.ResidualAdd, ID: "vendor.acme", Kind: opregistry.KindVendor, Vendor: "acme", Priority: 100,
		Run: func(*opregistry.Exec, norm.ResidualAddArgs) error { return errors.New("out of order") },
	}}}
	var quarantined opmanager.Quarantined
	event := c.sink.Event
	c.sink.Event = func(rank int, e opmanager.Event) {
		if q, ok := e.(opmanager.Quarantined); ok {
			quarantined = q
		}
		event(rank, e)
	}
	p := start(t, c.Socket(), "0", failing)
	p.call(t, 9)
	p.reporter.Close()
	c.Close()
	assert.Equal(t, uint64(5), s.use("residual_add", "vendor.acme").Errors)
	u := s.use("residual_add", "default.flagos")
	assert.Equal(t, [2]uint64{9, 5}, [2]uint64{u.Calls, u.Fallbacks})
	assert.Equal(t, "vendor.acme", quarantined.Impl.ID)
	require.Error(t, quarantined.Cause)
	assert.Contains(t, quarantined.Cause.Error(), "out of order")
}

// Whatever a process sends, the collector names the rank, drops it and goes on.
func TestStrangeProcesses(t *testing.T) {
	for name, lines := range map[string][]string{
		`given "nonsense", want its rank and version`: {"nonsense"},
		"primus_fl v9, which reports in another form": {`{"protocol": 99, "version": "v9", "rank": "0"}`},
		"rank 2: a report of its ops cannot be read":  {`{"protocol": 1, "rank": "2"}`, `{"calls": 7}`},
		`given an event "exploded"`:                   {`{"protocol": 1, "rank": "2"}`, `{"events": [{"event": "exploded", "times": 1}]}`},
		`event 0: given "selected" of "" 99999999 times after 0 of others, want at most 1048576`: {
			`{"protocol": 1, "rank": "2"}`, `{"events": [{"event": "selected", "times": 99999999}]}`},
		`event 2: given "failed" of "add" 2 times after 1048576 of others, want at most 1048576`: {
			`{"protocol": 1, "rank": "2"}`,
			`{"events": [{"event": "selected", "times": 1048575}, {"event": "selected", "times": 1}, {"event": "failed", "op": "add", "times": 2}]}`},
		"is longer than 4194304 bytes": {`{"protocol": 1, "rank": "2"}`, strings.Repeat("x", maxLine+1)},
	} {
		var s seen
		c, err := Listen("", s.sink())
		require.NoError(t, err)
		conn, err := net.Dial("unix", c.Socket())
		require.NoError(t, err)
		go conn.Write([]byte(strings.Join(lines, "\n") + "\n"))
		s.until(t, name, func() bool { return strings.Contains(s.warned(), name) })
		in := bufio.NewReader(conn)
		for err == nil {
			_, err = in.ReadByte()
		}
		p := start(t, c.Socket(), "0")
		p.call(t, 1)
		p.reporter.Close()
		c.Close()
		assert.Equal(t, uint64(1), s.use("residual_add", "default.flagos").Calls, name)
		assert.Len(t, s.dispatch.Uses(), 1, "%s: of such a report nothing counts", name)
		conn.Close()
	}
}

// A process whose program has ended goes on without it.
func TestProcessOutlivesCollector(t *testing.T) {
	c, err := Listen("", new(seen).sink())
	require.NoError(t, err)
	p := start(t, c.Socket(), "0")
	c.Close()
	p.call(t, 1)
	p.reporter.Close()
	r := &Reporter{}
	err = r.Start(t.Context(), c.Socket(), "0", p.Manager, func(string) {})
	assert.ErrorContains(t, err, Variable+"="+c.Socket())
	r.OnEvent(opmanager.Selected{Op: "residual_add"})
	assert.Empty(t, r.events)
	r.Close()
}

// The text of a policy means the same policy.
func TestPolicyText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	for range 500 {
		given := map[string]any{}
		for key, value := range map[string]any{
			"prefer": one("flagos", "vendor", "reference"), "strict": rng.IntN(2) == 0, "allow_vendors": []string{one("acme", "*"), "onednn"},
			"deny_vendors": []string{one("gonum", "x1")}, "deterministic": rng.IntN(2) == 0, "protect_in_place": rng.IntN(2) == 0,
			"per_op":       map[string]any{one("*_bwd", "generic_gemm"): []string{one("vendor:acme", "impl:vendor.acme"), "reference"}},
			"cross_device": one("copy", "error"), "quarantine": map[string]any{"failures": 1 + rng.IntN(9), "window": one("30s", "1m30s")},
			"rules":  []any{map[string]any{"layers": one("0-3", "1,7"), "phase": one("forward", "backward"), "prefer": "reference", "deny_vendors": []string{"acme"}}},
			"verify": map[string]any{"mode": one("off", "first", "sampled", "always"), "ops": []string{"rmsnorm_*"}, "quarantine": rng.IntN(2) == 0},
		} {
			if rng.IntN(3) == 0 {
				given[key] = value
			}
		}
		if rng.IntN(9) == 0 {
			given["verify"] = map[string]any{"fraction": rng.Float64()}
		}
		text, err := json.Marshal(given)
		require.NoError(t, err)
		first, err := policyfile.Parse(t.Context(), "first", text)
		require.NoError(t, err, "%s", text)
		again, err := PolicyText(first.Policy)
		require.NoError(t, err)
		if again == "" {
			assert.Empty(t, first.Policy.Given())
			continue
		}
		second, err := policyfile.Parse(t.Context(), "second", []byte(again))
		require.NoError(t, err, "%s", again)
		assert.Equal(t, first.Policy.Fingerprint(), second.Policy.Fingerprint(), "%s\n%s", text, again)
		assert.Equal(t, first.Policy.Given(), second.Policy.Given())
	}
}

// However often events happen, all of them arrive, in reports of a size that a Collector takes.
func TestManyEvents(t *testing.T) {
	var s seen
	c := &Collector{sink: s.sink()}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		left := make([]event, 1+rng.IntN(6))
		want, got := uint64(0), uint64(0)
		for i := range left {
			left[i] = event{Event: "selected", Times: 1 + rng.Uint64N([]uint64{3, mostTimes, 3 * mostTimes}[rng.IntN(3)])}
			want += left[i].Times
		}
		c.sink.Event = func(int, opmanager.Event) { got++ }
		for now := []event(nil); len(left) > 0; {
			now, left = split(left)
			require.NotEmpty(t, now)
			require.NoError(t, c.take(0, report{Events: now}))
		}
		require.Equal(t, want, got)
	}
}
