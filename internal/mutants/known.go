package main

import (
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// known returns the mutants with mistakes that are known from real libraries.
func known() []mutant {
	return slices.Concat(opMutants(), expertMutants(), contractMutants(), functionMutants(), optimizerMutants(), quantizeMutants(), magnitudeMutants())
}

// magnitudeMutants returns mutants of magnitudes that earlier kits passed.
func magnitudeMutants() (list []mutant) {
	for _, r := range magnitudes() {
		for _, op := range map[string][]opregistry.Handle{
			"element 777 is read as 0":                       {quant.ComputeAmax},
			"rows have a mean of at most 100":                {norm.LayerNormFwd, norm.LayerNormBwd},
			"an index after its predecessor is read as that": {embedding.EmbeddingFwd},
			"numbers from 1e3 to 1e5 are halved":             {loss.CrossEntropyFwd, norm.RMSNormBwdAdd, moe.FusedScoreForMoEAuxLossFwd},
			"rows from 65536 on are not written":             {quant.GroupQuantize, gemm.TEGeneralGroupedGemmForGroupedTensor},
		}[r.name] {
			list = append(list, r.of(op))
		}
	}
	return list
}

// mutate returns a mutant of the reference. The kit calls wrong with the right function and the
// arguments of a call.
func mutate[A any](name string, op *opregistry.Op[A], d tensor.DType, wrong func(right opregistry.Func[A], x *opregistry.Exec, a A) error) mutant {
	run := function(op)
	return mutant{
		rule: name, dtype: d, oracle: right(op),
		impl: opregistry.Impl{Op: op, ID: "wrong", Kind: opregistry.KindReference, Run: func(x *opregistry.Exec, a A) error { return wrong(run, x, a) }},
	}
}

// each replaces the elements of a tensor.
func each(x *tensor.Tensor, f func(float64) float64) error {
	v := x.Float64s()
	for i := range v {
		v[i] = f(v[i])
	}
	return x.SetFloat64s(v)
}

// rounded rounds v to the dtype of x, as between two steps of a computation.
func rounded(x *tensor.Tensor, v []float64) ([]float64, error) {
	err := x.SetFloat64s(v)
	return x.Float64s(), err
}
