package opstest

import (
	"slices"

	"github.com/primus-fl/primus/internal/argcopy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// NamedCall is a call that a program made, with its operands as they were before it.
type NamedCall struct {
	Name string
	Op   opregistry.Handle
	Call opregistry.Call
}

// WithCalls also runs copies of these calls, of which those of other ops are left out. The absolute
// tolerance of their results is that of the op, for results near 1, times the largest of them.
func WithCalls(calls ...NamedCall) Option {
	return optionFunc(func(c *config) { c.calls = append(c.calls, calls...) })
}

// recorded returns the cases of calls whose operands have storage dtype d.
func (r *runner) recorded(d tensor.DType) []untypedCase {
	var cases []untypedCase
	for _, c := range r.cfg.calls {
		if c.Op != r.op || storage(c.Call) != d {
			continue
		}
		longest := 0
		for _, o := range c.Call.Operands() {
			longest = max(longest, slices.Max(append(o.Tensor.Shape(), 0)))
		}
		cases = append(cases, untypedCase{
			Name: "recorded/" + c.Name, Terms: longest, dtype: d, model: true, recorded: true,
			Make: func(s *Stage) opregistry.Call { return s.copied(c.Call) },
		})
	}
	return cases
}

// storage returns the dtype of the lead operand of a call, or of the first operand of numbers.
func storage(c opregistry.Call) tensor.DType {
	operands := c.Operands()
	if lead := c.Lead(); lead != nil {
		operands = slices.Insert(operands, 0, opregistry.Operand{Tensor: lead})
	}
	for _, o := range operands {
		if slices.Contains(ComputeDTypes(), o.Tensor.DType()) {
			return o.Tensor.DType()
		}
	}
	return tensor.F32
}

// copied returns a call with guarded copies of its operands. Those that are only written are new.
func (s *Stage) copied(c opregistry.Call) opregistry.Call {
	s.T.Helper()
	read := map[*tensor.Tensor]bool{}
	for _, o := range c.Operands() {
		read[o.Tensor] = read[o.Tensor] || o.Access != opregistry.AccessWrite
	}
	made, err := argcopy.Replace(c, func(x *tensor.Tensor) (*tensor.Tensor, error) {
		y, intact := s.place.Guarded(s.T, x.DType(), x.Shape(), x.Strides())
		s.guards = append(s.guards, intact)
		if !read[x] {
			return y, nil
		}
		return y, y.CopyFrom(x)
	})
	if err != nil {
		s.T.Fatalf("opstest: %v", err)
	}
	return made
}
