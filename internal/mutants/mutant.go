package main

import (
	"path"
	"strings"
	"sync/atomic"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// mutant is an impl with one mistake.
type mutant struct {
	rule    string
	impl    opregistry.Impl
	oracle  opregistry.Impl
	dtype   tensor.DType
	options []opstest.Option
	changed *atomic.Int64 // calls whose results the mistake changed; nil when it is not known
	results *atomic.Int64 // elements of all results; nil when they are not counted
	free    *atomic.Int64 // calls in which the argument that is ignored could have another value
}

func (m mutant) name() string { return m.impl.Op.Name() + ":" + m.rule }

// family returns the last element of the package of an op's arguments.
func family(op opregistry.Handle) string { return path.Base(op.Args().PkgPath()) }

// refusal runs the kit and returns the first requirement that the mutant did not meet, "" if it
// passed.
func (m mutant) refusal() (string, error) {
	options := []opstest.Option{opstest.WithDTypes(m.dtype), opstest.GuardPages(), opstest.UntilFailure()}
	if forward, ok := opstest.Forward(reference.Source(), m.oracle); ok {
		options = append(options, opstest.WithForward(forward), opstest.WithOracleForward(forward))
	}
	options = append(options, m.options...)
	results, err := opscases.All().Verify(m.impl, m.oracle, options...)
	if err != nil {
		return "", err
	}
	return refused(results), nil
}

// refused returns the first failure of results in one line, "" when there is none.
func refused(results []opstest.Result) string {
	served := 0
	for _, r := range results {
		if len(r.Failures) > 0 {
			f := r.Failures[0]
			return f.Case + ": " + strings.ReplaceAll(f.Reason, "\n", "; ")
		}
		served += r.Served
	}
	if served == 0 {
		return "it declined all cases"
	}
	return ""
}

// right returns the reference of an op.
func right(op opregistry.Handle) opregistry.Impl {
	for _, i := range reference.Source().Impls {
		if i.Op == op {
			return i
		}
	}
	panic("BUG: mutants: no reference of op " + op.Name())
}

// function returns the function of the reference of an op.
func function[A any](op *opregistry.Op[A]) opregistry.Func[A] {
	return right(op).Run.(opregistry.Func[A])
}
