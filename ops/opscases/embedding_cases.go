package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// embeddingShape is a lookup of n rows of h in a table of vocab rows.
type embeddingShape struct{ vocab, h, n int }

func embeddingShapes() []embeddingShape {
	return []embeddingShape{{1, 1, 1}, {5, 3, 9}, {17, 64, 33}, {100, 7, 4}, {6, 129, 50}, {5, 3, 0}, {0, 3, 0}, {4, 0, 3}}
}

func (e embeddingShape) String() string { return fmt.Sprintf("vocab%d,h%d,n%d", e.vocab, e.h, e.n) }

func embeddingFwdCases(d tensor.DType) []opstest.Case[embedding.EmbeddingFwdArgs] {
	var cases []opstest.Case[embedding.EmbeddingFwdArgs]
	add := func(name string, make func(*opstest.Stage) embedding.EmbeddingFwdArgs) {
		cases = append(cases, opstest.Case[embedding.EmbeddingFwdArgs]{Name: name, Make: make})
	}
	for _, e := range embeddingShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				add(fmt.Sprintf("%v/%v/%v", e, l, index), func(s *opstest.Stage) embedding.EmbeddingFwdArgs {
					return embedding.EmbeddingFwdArgs{
						Indices: s.Indexes(index, e.n, e.vocab), Weight: s.In(l, d, e.vocab, e.h), Output: s.Out(l, d, e.n, e.h),
					}
				})
			}
		}
	}
	add("axes", func(s *opstest.Stage) embedding.EmbeddingFwdArgs {
		return embedding.EmbeddingFwdArgs{Indices: s.Indexes(tensor.I64, 6, 9), Weight: s.In(opstest.Dense, d, 9, 4), Output: s.Out(opstest.Dense, d, 2, 3, 4)}
	})
	add("nan_and_inf", func(s *opstest.Stage) embedding.EmbeddingFwdArgs {
		a := embedding.EmbeddingFwdArgs{Indices: s.Values(tensor.I32, 2, 0, 1), Weight: s.In(opstest.Dense, d, 3, 4), Output: s.Out(opstest.Dense, d, 3, 4)}
		a.Weight.Set(math.NaN(), 0, 1)
		a.Weight.Set(math.Inf(-1), 1, 2)
		return a
	})
	return cases
}

func embeddingBwdCases(d tensor.DType) []opstest.Case[embedding.EmbeddingBwdArgs] {
	var cases []opstest.Case[embedding.EmbeddingBwdArgs]
	add := func(name string, make func(*opstest.Stage) embedding.EmbeddingBwdArgs) {
		cases = append(cases, opstest.Case[embedding.EmbeddingBwdArgs]{Name: name, Make: make})
	}
	tableOf := func(s *opstest.Stage, l opstest.Layout, d tensor.DType, accumulate bool, e embeddingShape) *tensor.Tensor {
		if accumulate {
			return s.In(l, d, e.vocab, e.h)
		}
		return s.Out(l, d, e.vocab, e.h)
	}
	table := func(s *opstest.Stage, l opstest.Layout, accumulate bool, e embeddingShape) *tensor.Tensor {
		return tableOf(s, l, d, accumulate, e)
	}
	for _, accumulate := range []bool{false, true} {
		for _, e := range embeddingShapes() {
			for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
				for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
					add(fmt.Sprintf("%v/%v/%v/accumulate=%v", e, l, index, accumulate), func(s *opstest.Stage) embedding.EmbeddingBwdArgs {
						return embedding.EmbeddingBwdArgs{
							Grad: s.In(l, d, e.n, e.h), Indices: s.Indexes(index, e.n, e.vocab),
							DWeight: table(s, l, accumulate, e), Accumulate: accumulate,
						}
					})
				}
			}
		}
		for _, other := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, e := range []embeddingShape{{17, 64, 33}, {100, 7, 4}} {
				add(fmt.Sprintf("%v/%v_table/accumulate=%v", e, other, accumulate), func(s *opstest.Stage) embedding.EmbeddingBwdArgs {
					return embedding.EmbeddingBwdArgs{
						Grad: s.In(opstest.Padded, d, e.n, e.h), Indices: s.Indexes(tensor.I32, e.n, e.vocab),
						DWeight: tableOf(s, opstest.Dense, other, accumulate, e), Accumulate: accumulate,
					}
				})
			}
		}
		// A sum that is rounded to a narrow dtype after each row has a large error here.
		add(fmt.Sprintf("one_index_often/accumulate=%v", accumulate), func(s *opstest.Stage) embedding.EmbeddingBwdArgs {
			e := embeddingShape{3, 5, 600}
			index := make([]float64, e.n)
			for i := range index {
				index[i] = 1
			}
			return embedding.EmbeddingBwdArgs{
				Grad: s.In(opstest.Dense, d, e.n, e.h), Indices: s.Values(tensor.I32, index...), DWeight: table(s, opstest.Dense, accumulate, e), Accumulate: accumulate,
			}
		})
	}
	add("axes", func(s *opstest.Stage) embedding.EmbeddingBwdArgs {
		return embedding.EmbeddingBwdArgs{Grad: s.In(opstest.Dense, d, 2, 3, 4), Indices: s.Indexes(tensor.I64, 6, 9), DWeight: s.Out(opstest.Dense, d, 9, 4)}
	})
	add("nan_and_inf", func(s *opstest.Stage) embedding.EmbeddingBwdArgs {
		a := embedding.EmbeddingBwdArgs{Grad: s.In(opstest.Dense, d, 3, 4), Indices: s.Values(tensor.I32, 2, 0, 2), DWeight: s.Out(opstest.Dense, d, 4, 4)}
		a.Grad.Set(math.NaN(), 0, 1)
		a.Grad.Set(math.Inf(-1), 1, 2)
		return a
	})
	return cases
}
