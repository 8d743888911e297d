package opstest

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Kit holds the cases of some ops. That of the whole catalogue is made by package opscases; each
// family of ops has its own beside it, such as that of package normtest.
type Kit struct {
	Suites    []*Suite
	Gradients []Gradient
}

// Join returns a kit with the cases of all kits.
func Join(kits ...Kit) Kit {
	var all Kit
	for _, k := range kits {
		all.Suites = append(all.Suites, k.Suites...)
		all.Gradients = append(all.Gradients, k.Gradients...)
	}
	return all
}

// Suite returns the cases of an op, nil when there are none.
func (k Kit) Suite(op opregistry.Handle) *Suite {
	i := slices.IndexFunc(k.Suites, func(s *Suite) bool { return s.op == op })
	if i < 0 {
		return nil
	}
	return k.Suites[i]
}

// Names returns the names of the cases with operands of one storage dtype.
func (s *Suite) Names(d tensor.DType) []string {
	var names []string
	for _, c := range s.cases(d) {
		names = append(names, c.Name)
	}
	return names
}

// gradCases returns the function that makes the cases of a pair, nil when there are none.
func (k Kit) gradCases(backward, forward opregistry.Handle) func() []GradCase {
	for _, p := range k.Gradients {
		if p.Backward == backward && p.Forward == forward {
			return p.Cases
		}
	}
	return nil
}
