package opstest

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// Option changes what Run, RunAll and GradCheck require of an impl.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	dtypes         []tensor.DType
	mustServe      []tensor.DType
	tolerances     map[tensor.DType]tensortest.Tolerance
	forward        *opregistry.Impl
	oracleForward  *opregistry.Impl
	irreproducible bool
	partialOracle  bool
	thorough       bool // calls of models are whole
	calls          []NamedCall
	untilFailure   bool
	pages          bool   // operands lie beside pages that must not be touched
	sample         int    // of the corner cases of a dtype; 0 stands for all
	seed           uint64 // of the sample
	progress       func(name string)
}

func newConfig(opts []Option) *config {
	c := &config{dtypes: ComputeDTypes(), tolerances: map[tensor.DType]tensortest.Tolerance{}}
	for _, o := range opts {
		o.apply(c)
	}
	return c
}

// ComputeDTypes are the storage dtypes of the catalogue.
func ComputeDTypes() []tensor.DType {
	return []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64}
}

// WithDTypes restricts the cases to these storage dtypes.
func WithDTypes(dtypes ...tensor.DType) Option {
	return optionFunc(func(c *config) { c.dtypes = slices.Clone(dtypes) })
}

// MustServe makes a declined case of one of these dtypes a failure when all of
// its operands are contiguous.
func MustServe(dtypes ...tensor.DType) Option {
	return optionFunc(func(c *config) { c.mustServe = slices.Clone(dtypes) })
}

// WithTolerance replaces the tolerance for written operands of dtype d. Give the reason in a
// comment at the call.
func WithTolerance(d tensor.DType, tol tensortest.Tolerance) Option {
	return optionFunc(func(c *config) { c.tolerances[d] = tol })
}

// WithForward names the forward impl whose saved state the impl under test reads. Without it the
// saved state is what the op's documentation defines: rsigma, log-sum-exp.
func WithForward(forward opregistry.Impl) Option {
	return optionFunc(func(c *config) { c.forward = &forward })
}

// WithOracleForward names the forward impl whose saved state the oracle reads in cases whose
// operands or arguments a rule has changed. Without it no rule changes those of a backward op.
func WithOracleForward(forward opregistry.Impl) Option {
	return optionFunc(func(c *config) { c.oracleForward = &forward })
}

// Irreproducible drops the requirement that results have the same bits for any number of workers
// and when calls overlap. They must still be right. An impl that declares its determinism must
// nevertheless keep to the declaration.
func Irreproducible() Option {
	return optionFunc(func(c *config) { c.irreproducible = true })
}

// PartialOracle skips the cases that the oracle declines; without it they fail the test. They count
// neither as served nor as declined.
func PartialOracle() Option {
	return optionFunc(func(c *config) { c.partialOracle = true })
}

// Thorough calls ops with the whole sizes of models, as far as operands have at most 2²⁷ elements,
// which takes minutes and gigabytes. Otherwise one length of a call is that of a model and the
// others are small.
func Thorough() Option {
	return optionFunc(func(c *config) { c.thorough = true })
}

// Sample runs n corner cases in each dtype and one case of the sizes of a model in f32 and bf16,
// chosen by a seed, in place of all.
func Sample(n int, seed uint64) Option {
	return optionFunc(func(c *config) { c.sample, c.seed = n, seed })
}

// UntilFailure ends at the first requirement that is not met.
func UntilFailure() Option {
	return optionFunc(func(c *config) { c.untilFailure = true })
}

// GuardPages also runs cases with operands that end, and with ones that begin, at a page of memory
// that must not be touched: an impl that reads a byte too far fails. Code that is not Go ends the
// process when it does so, after WithProgress has named the case. It has no effect on systems other
// than Unix.
func GuardPages() Option {
	return optionFunc(func(c *config) { c.pages = true })
}

// WithProgress calls f with the name of each case before it runs, so that a case which ends the
// process can be named.
func WithProgress(f func(name string)) Option {
	return optionFunc(func(c *config) { c.progress = f })
}

// loose reports whether the bound for a dtype was replaced by one that allows what is off on
// average.
func (c *config) loose(d tensor.DType) bool {
	_, ok := c.tolerances[d]
	return ok
}

// tolerance returns the bound for a written operand of dtype d.
func (c *config) tolerance(op opregistry.Handle, d tensor.DType) tensortest.Tolerance {
	if tol, ok := c.tolerances[d]; ok {
		return tol
	}
	return op.Tolerance().Of(d)
}
