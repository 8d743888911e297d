package opmanager_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
)

// callCase is a recorded series of calls of one op.
type callCase struct {
	ID    string            `json:"id"`
	Env   map[string]string `json:"env"`
	Impls []callImpl        `json:"impls"`
	Steps []callStep        `json:"steps"`
	Bug   string            `json:"upstream_bug"` // what is wrong with the recorded answers
	Old   []callAnswer      `json:"upstream_old"`
	New   []callAnswer      `json:"upstream_new"`
}

type callImpl struct {
	ID        string          `json:"impl_id"`
	Kind      opregistry.Kind `json:"kind"`
	Vendor    string          `json:"vendor"`
	Priority  int             `json:"priority"`
	Available any             `json:"available"` // true or absent, else it is not
	Fail      any             `json:"fail"`      // "always", "once" or the numbers of the runs that fail, from 0
	Exception string          `json:"exc"`       // what a failure raises
}

type callStep struct {
	Do   string            `json:"do"`
	Args callPolicy        `json:"args"` // of policy and context
	Set  map[string]string `json:"set"`  // of env
	Impl string            `json:"impl_id"`
	To   any               `json:"to"` // of avail
}

type callPolicy struct {
	Prefer string              `json:"prefer"`
	Strict bool                `json:"strict"`
	PerOp  map[string][]string `json:"per_op_order"`
	Deny   []string            `json:"deny_vendors"`
	Allow  []string            `json:"allow_vendors"`
}

// callAnswer is what one call did; a failed one has no Result.
type callAnswer struct {
	Executed []string `json:"executed"`
	Result   string   `json:"result"`
}

func (p callPolicy) policy(t *testing.T) oppolicy.Policy {
	t.Helper()
	policy := oppolicy.Default()
	policy.Strict, policy.Deny, policy.Allow = p.Strict, p.Deny, p.Allow
	if p.Prefer != "" {
		require.NoError(t, policy.SetPrefer(p.Prefer, "test"))
	}
	for op, tokens := range p.PerOp {
		rule := oppolicy.OpRule{Pattern: op}
		for _, text := range tokens {
			token, err := oppolicy.ParseToken(text)
			require.NoError(t, err)
			rule.Order = append(rule.Order, token)
		}
		policy.PerOp = append(policy.PerOp, rule)
	}
	return policy
}

// fails reports whether run number n of an impl fails.
func (i *callImpl) fails(t *testing.T, n int) bool {
	switch when := i.Fail.(type) {
	case nil:
		return false
	case string:
		if when == "always" || when == "once" {
			return when == "always" || n == 0
		}
	case []any:
		return slices.Contains(when, any(float64(n)))
	}
	t.Errorf("impl %q fails %v, want always, once or numbers of runs", i.ID, i.Fail)
	return false
}

// declines reports whether a failure says that the impl does not serve the call.
func (i *callImpl) declines() bool { return i.Exception == "NotImplementedError" }

// callModel says what calls have to do by the rules of the package comment. It
// leaves the order of the candidates to Select, which has cases of its own.
type callModel struct {
	t        *testing.T
	impls    []callImpl
	runs     map[string]int // of each impl
	failures map[string]int // that count towards a quarantine
}

// call returns what a call under a policy has to do.
func (m *callModel) call(p oppolicy.Policy, resolve func(string) string) callAnswer {
	candidates := make([]oppolicy.Candidate, len(m.impls))
	for i, impl := range m.impls {
		candidates[i] = oppolicy.Candidate{ID: impl.ID, Kind: impl.Kind, Vendor: impl.Vendor, Priority: impl.Priority}
		if impl.Available != nil && impl.Available != true || m.failures[impl.ID] >= 3 {
			candidates[i].Unusable = "unavailable or in quarantine"
		}
	}
	order, _ := p.Select("op", candidates, resolve)
	var answer callAnswer
	for _, i := range order {
		impl := &m.impls[i]
		answer.Executed = append(answer.Executed, impl.ID)
		n := m.runs[impl.ID]
		m.runs[impl.ID]++
		if !impl.fails(m.t, n) {
			answer.Result = impl.ID
			return answer
		}
		if !impl.declines() {
			m.failures[impl.ID]++
		}
		if p.Strict {
			return answer
		}
	}
	return answer
}

// callRun is a Manager over the impls of a case.
type callRun struct {
	*opmanager.Manager
	op       *opregistry.Op[addArgs]
	registry *opregistry.Registry
	executed []string
}

func newCallRun(t *testing.T, impls []callImpl, p oppolicy.Policy) *callRun {
	t.Helper()
	r := &callRun{
		op:       opregistry.NewOp("op", opregistry.Schema[addArgs]{}),
		registry: opregistry.NewRegistry(),
	}
	src := opregistry.Source{Name: "case"}
	for i := range impls {
		impl, runs := &impls[i], 0
		src.Impls = append(src.Impls, opregistry.Impl{
			Op: r.op, ID: impl.ID, Kind: impl.Kind, Vendor: impl.Vendor, Priority: impl.Priority,
			Available: func() error {
				if impl.Available == nil || impl.Available == true {
					return nil
				}
				return errors.New("switched off")
			},
			Run: func(*opregistry.Exec, addArgs) error {
				r.executed = append(r.executed, impl.ID)
				runs++
				switch {
				case !impl.fails(t, runs-1):
					return nil
				case impl.declines():
					return opregistry.Unsupported("this call")
				default:
					return errors.New(impl.ID + " failed")
				}
			},
		})
	}
	require.NoError(t, r.registry.Register(src))
	r.Manager = opmanager.New(r.registry, unverified(p), opmanager.Settings{})
	t.Cleanup(r.Close)
	return r
}

// call calls the op through a view and returns what that did.
func (r *callRun) call(t *testing.T, m *opmanager.Manager) callAnswer {
	t.Helper()
	r.executed = nil
	err := opmanager.MustBind(m, r.op).Call(newArgs(t))
	answer := callAnswer{Executed: r.executed}
	if err == nil {
		answer.Result = answer.Executed[len(answer.Executed)-1]
	}
	return answer
}

// TestCallConformance replays the recorded series of calls. The answers are those
// of callModel, which have to be the recorded ones where nothing is wrong with these.
func TestCallConformance(t *testing.T) {
	ran := 0
	primustest.EachLine(t, primustest.Recorded(t, "te-fl", "conformance_call.jsonl"), func(line []byte) {
		var c callCase
		require.NoError(t, json.Unmarshal(line, &c))
		ran++
		t.Run(c.ID, func(t *testing.T) { replayCalls(t, &c) })
	})
	require.Positive(t, ran)
}

func replayCalls(t *testing.T, c *callCase) {
	for _, impl := range c.Impls {
		switch impl.Exception {
		case "KeyboardInterrupt", "SystemExit":
			t.Skip("an interruption is no error that an impl could return")
		case "TypeError", "ValueError", "AssertionError":
			refuseArguments(t, c)
			return
		}
	}
	environment := func() (oppolicy.Policy, error) { return fromEnvironment(c.Env) }
	policy, err := environment()
	if err != nil {
		var wrong *oppolicy.Error
		require.ErrorAs(t, err, &wrong)
		assert.NotEmpty(t, c.Bug, "a value that is refused here is one that was misread")
		return
	}
	run := newCallRun(t, c.Impls, policy)
	model := &callModel{t: t, impls: c.Impls, runs: map[string]int{}, failures: map[string]int{}}
	resolve := run.registry.Snapshot().Vendor
	calls := 0
	check := func(m *opmanager.Manager, p oppolicy.Policy) {
		want := model.call(p, resolve)
		assert.Equal(t, want, run.call(t, m), "call %d", calls)
		if c.Bug == "" {
			require.Greater(t, min(len(c.Old), len(c.New)), calls)
			assert.Contains(t, []callAnswer{c.Old[calls], c.New[calls]}, want, "call %d", calls)
		}
		calls++
	}
	for _, step := range c.Steps {
		switch step.Do {
		case "call":
			check(run.Manager, policy)
		case "context":
			scoped := step.Args.policy(t)
			view := run.With(scoped)
			check(view, scoped)
			view.Close()
		case "policy":
			policy = step.Args.policy(t)
			run.SetPolicy(unverified(policy))
		case "env":
			if c.Env == nil {
				c.Env = map[string]string{}
			}
			maps.Copy(c.Env, step.Set)
		case "reset_policy":
			policy, err = environment()
			require.NoError(t, err)
			run.SetPolicy(unverified(policy))
		case "avail":
			i := slices.IndexFunc(c.Impls, func(impl callImpl) bool { return impl.ID == step.Impl })
			require.GreaterOrEqual(t, i, 0, step.Impl)
			c.Impls[i].Available = step.To
			run.Reprobe()
		default:
			t.Fatalf("unknown step %q", step.Do)
		}
	}
	for _, s := range run.Stats() {
		assert.EqualValues(t, model.failures[s.ID], s.Errors, s.ID)
		assert.EqualValues(t, model.runs[s.ID], s.Calls+s.Errors+s.Declines, s.ID)
	}
}

// refuseArguments replays a case in which the arguments are wrong.
func refuseArguments(t *testing.T, c *callCase) {
	policy, err := fromEnvironment(c.Env)
	require.NoError(t, err)
	run := newCallRun(t, c.Impls, policy)
	var arg *opregistry.ArgError
	require.ErrorAs(t, opmanager.MustBind(run.Manager, run.op).Call(addArgs{}), &arg)
	assert.Empty(t, run.executed)
}

// unverified returns a policy that verifies nothing, because the recorded answers count every run.
func unverified(p oppolicy.Policy) oppolicy.Policy {
	p.Verify.Mode = oppolicy.VerifyOff
	return p
}

func fromEnvironment(env map[string]string) (oppolicy.Policy, error) {
	return oppolicy.FromEnvironment(func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}
