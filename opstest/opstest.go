package opstest

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
)

// Run runs impl in every case of its op and compares it with oracle, a trusted impl of the same op.
// The kit must have cases of the op.
func (k Kit) Run(t *testing.T, impl, oracle opregistry.Impl, opts ...Option) {
	t.Helper()
	s, err := k.comparison(impl, oracle)
	if err != nil {
		t.Fatal(err)
	}
	r := s.run(goTest{t}, impl, oracle, newConfig(opts))
	t.Logf("opstest: op %q: impl %q served %d cases and declined %d", impl.Op.Name(), impl.ID, len(r.served), r.declined)
	if len(r.served) == 0 && !t.Failed() {
		t.Errorf("opstest: op %q: impl %q declined all %d cases", impl.Op.Name(), impl.ID, r.declined)
	}
}

// RunAll calls Run for each impl of a source, in a sub-test named by op and id, with the first impl
// of that op in oracle. An impl of a backward op reads the state saved by the impl of the family's
// forward op with the same id, if src has one. Impls of ops without cases in the kit are skipped.
func (k Kit) RunAll(t *testing.T, src, oracle opregistry.Source, opts ...Option) {
	t.Helper()
	for _, impl := range src.Impls {
		t.Run(impl.Op.Name()+"/"+impl.ID, func(t *testing.T) {
			if k.Suite(impl.Op) == nil {
				t.Skipf("op %q has no cases", impl.Op.Name())
			}
			if impl.Available != nil {
				if err := impl.Available(); err != nil {
					t.Skipf("not available: %v", err)
				}
			}
			trusted, ok := find(oracle, func(o opregistry.Impl) bool { return o.Op == impl.Op })
			if !ok {
				t.Fatalf("opstest: oracle %q has no impl of op %q", oracle.Name, impl.Op.Name())
			}
			use := opts
			if forward, ok := Forward(src, impl); ok {
				use = append([]Option{WithForward(forward)}, opts...)
			}
			if forward, ok := Forward(oracle, trusted); ok {
				use = append([]Option{WithOracleForward(forward)}, use...)
			}
			k.Run(t, impl, trusted, use...)
		})
	}
}

// GradCheck compares impl, of a backward op, with central differences of forward, which is an impl
// in f64 of the op that it is the gradient of. For residual_add, and for generic_gemm and
// te_general_grouped_gemm, which are their own gradients, both are impls of that op. Operands are
// f64; an impl that declines them is skipped.
func (k Kit) GradCheck(t *testing.T, impl, forward opregistry.Impl, opts ...Option) {
	t.Helper()
	if impl.Op == nil || forward.Op == nil {
		t.Fatalf("opstest: got impl %q of %s and forward %q of %s, want an op for both", impl.ID, opName(impl), forward.ID, opName(forward))
	}
	cases := k.gradCases(impl.Op, forward.Op)
	if cases == nil {
		t.Fatalf("opstest: got backward op %q with forward op %q, want a pair in Gradients", impl.Op.Name(), forward.Op.Name())
	}
	cfg := newConfig(opts)
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.check(goTest{t}, impl, forward, cfg) })
	}
}

// GradCheckAll calls GradCheck for each impl of src whose op is the gradient of another, in a
// sub-test named by op and id, with the impls of oracle as forward.
func (k Kit) GradCheckAll(t *testing.T, src, oracle opregistry.Source, opts ...Option) {
	t.Helper()
	for _, pair := range k.Gradients {
		forward, ok := find(oracle, func(o opregistry.Impl) bool { return o.Op == pair.Forward })
		if !ok {
			t.Fatalf("opstest: oracle %q has no impl of op %q", oracle.Name, pair.Forward.Name())
		}
		for _, impl := range src.Impls {
			if impl.Op != pair.Backward {
				continue
			}
			t.Run(impl.Op.Name()+"/"+impl.ID, func(t *testing.T) {
				if impl.Available != nil {
					if err := impl.Available(); err != nil {
						t.Skipf("not available: %v", err)
					}
				}
				use := opts
				if own, ok := Forward(src, impl); ok {
					use = append([]Option{WithForward(own)}, opts...)
				}
				k.GradCheck(t, impl, forward, use...)
			})
		}
	}
}

func opName(i opregistry.Impl) string {
	if i.Op == nil {
		return "no op"
	}
	return "op " + i.Op.Name()
}

func find(src opregistry.Source, match func(opregistry.Impl) bool) (opregistry.Impl, bool) {
	for _, i := range src.Impls {
		if match(i) {
			return i, true
		}
	}
	return opregistry.Impl{}, false
}
