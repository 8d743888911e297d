package main

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// expertMutants returns mutants with mistakes in attention with options, packed sequences and
// mixtures of experts.
func expertMutants() []mutant {
	type (
		exec    = opregistry.Exec
		attn    = attention.FusedAttnFwdArgs
		grouped = gemm.TEGeneralGroupedGemmArgs
		blocks  = gemm.GroupedGemmArgs
		combine = moe.MoEUnpermuteArgs
		topk    = moe.FusedTopkWithScoreFunctionFwdArgs
		out     = attention.THDOutCorrectionArgs
		cache   = attention.CopyToKVCacheArgs
	)
	return []mutant{
		mutate("padding has no causal mask", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if a.AttnMaskType.Padding() {
				a.AttnMaskType = attention.PaddingMask
			}
			return right(x, a)
		}),
		mutate("true is what is kept", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			if a.AttentionMask == nil {
				return right(x, a)
			}
			hidden := a.AttentionMask.Float64s()
			defer func() { _ = a.AttentionMask.SetFloat64s(hidden) }()
			if err := each(a.AttentionMask, func(v float64) float64 { return 1 - v }); err != nil {
				return err
			}
			return right(x, a)
		}),
		mutate("dropout has a generator of its own", attention.FusedAttnFwd, tensor.F32, func(right opregistry.Func[attn], x *exec, a attn) error {
			a.RNGOffset++
			return right(x, a)
		}),
		mutate("empty groups are left alone", gemm.TEGeneralGroupedGemm, tensor.F32, func(right opregistry.Func[grouped], x *exec, a grouped) error {
			if a.SingleOutput || a.Accumulate || !a.TransB {
				return right(x, a)
			}
			for i := range a.A {
				one := a
				one.A, one.B, one.D = a.A[i:i+1], a.B[i:i+1], a.D[i:i+1]
				if a.Bias != nil {
					one.Bias = a.Bias[i : i+1]
				}
				if a.A[i].NumElements() == 0 {
					continue
				}
				if err := right(x, one); err != nil {
					return err
				}
			}
			return nil
		}),
		mutate("beta times what is not read", gemm.TEGeneralGroupedGemmForDiscreteOut, tensor.F32, func(right opregistry.Func[blocks], x *exec, a blocks) error {
			var old [][]float64
			for _, d := range a.D.List {
				old = append(old, d.Float64s())
			}
			if err := right(x, a); err != nil || a.Beta == nil {
				return err
			}
			for i, d := range a.D.List {
				v := d.Float64s()
				for k := range v {
					v[k] += 0 * old[i][k]
				}
				if err := d.SetFloat64s(v); err != nil {
					return err
				}
			}
			return nil
		}),
		mutate("sums are kept in bf16", moe.MoEUnpermuteFwd, tensor.BF16, func(_ opregistry.Func[combine], _ *exec, a combine) error {
			tokens, h := a.Output.Shape()[0], a.Output.Shape()[1]
			sums, rows := make([]float64, tokens*h), a.Input.Float64s()
			for i, r := range a.RowIDMap.Float64s() {
				t, k := i%max(tokens, 1), i/max(tokens, 1)
				for j := 0; j < h && r >= 0; j++ {
					f := 1.0
					if a.Prob != nil {
						f = a.Prob.At(t, k)
					}
					sums[t*h+j] += f * rows[int(r)*h+j]
				}
				var err error
				if sums, err = rounded(a.Output, sums); err != nil {
					return err
				}
			}
			return a.Output.SetFloat64s(sums)
		}),
		mutate("bias enters the weights", moe.FusedTopkWithScoreFunctionFwd, tensor.F32, func(right opregistry.Func[topk], x *exec, a topk) error {
			if err := right(x, a); err != nil || a.ExpertBias == nil {
				return err
			}
			bias, chosen, i := a.ExpertBias.Float64s(), a.RoutingMap.Float64s(), -1
			return each(a.Probs, func(p float64) float64 {
				i++
				return p + chosen[i]*bias[i%len(bias)]/1000
			})
		}),
		mutate("groups are ignored", moe.FusedTopkWithScoreFunctionFwd, tensor.F32, func(right opregistry.Func[topk], x *exec, a topk) error {
			a.GroupTopk = 0
			return right(x, a)
		}),
		mutate("zero times infinity", attention.THDOutCorrection, tensor.F32, func(right opregistry.Func[out], x *exec, a out) error {
			if a.Out.NumElements() == 6 && a.LSEPacked && a.Out.Shape()[0] == 2 {
				a.Out.Set(math.NaN(), 0, 0, 0)
				return nil
			}
			return right(x, a)
		}),
		mutate("slots stay where they are", attention.CopyToKVCache, tensor.F32, func(right opregistry.Func[cache], x *exec, a cache) error {
			if a.IsNonPaged && a.PageTable.NumElements() > 0 {
				order := make([]int32, a.PageTable.NumElements())
				for i := range order {
					order[i] = int32(i)
				}
				table, err := tensor.FromSlice(order, len(order), 1)
				if err != nil {
					return err
				}
				a.PageTable = table
			}
			return right(x, a)
		}),
	}
}
