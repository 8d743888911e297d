package model_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
)

// The runs of a slice are its elements, in order, each with its place in the whole weight.
func TestRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		slice model.Slice
		shape tensor.Shape
		want  []int // the place of each element
	}{
		"all":       {model.Slice{Whole: tensor.Shape{2, 3}}, tensor.Shape{2, 3}, []int{0, 1, 2, 3, 4, 5}},
		"rows":      {model.Slice{Whole: tensor.Shape{4, 2}, Rows: []model.Range{{Lo: 1, Hi: 2}, {Lo: 3, Hi: 4}}}, tensor.Shape{2, 2}, []int{2, 3, 6, 7}},
		"columns":   {model.Slice{Whole: tensor.Shape{2, 4}, Cols: []model.Range{{Lo: 0, Hi: 1}, {Lo: 2, Hi: 4}}}, tensor.Shape{2, 3}, []int{0, 2, 3, 4, 6, 7}},
		"both":      {model.Slice{Whole: tensor.Shape{3, 3}, Rows: []model.Range{{Lo: 1, Hi: 3}}, Cols: []model.Range{{Lo: 2, Hi: 3}}}, tensor.Shape{2, 1}, []int{5, 8}},
		"a vector":  {model.Slice{Whole: tensor.Shape{5}, Rows: []model.Range{{Lo: 3, Hi: 5}}}, tensor.Shape{2}, []int{3, 4}},
		"no matter": {model.Slice{Whole: tensor.Shape{3}}, tensor.Shape{3}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.shape, tt.slice.Shape())
			for lo := range tt.want {
				for hi := lo; hi <= len(tt.want); hi++ {
					next := lo
					tt.slice.Runs(lo, hi, func(at, to, n int) {
						assert.Equal(t, next, at)
						assert.Positive(t, n)
						for i := range n {
							assert.Equal(t, tt.want[at+i], to+i)
						}
						next = at + n
					})
					assert.Equal(t, hi, next)
				}
			}
		})
	}
}

// Portions follow each other, differ by one at most, and each element is in that of its rank.
func TestPortions(t *testing.T) {
	for ranks := 1; ranks < 9; ranks++ {
		for n := ranks; n < 40; n++ {
			next := 0
			for rank := range ranks {
				p := model.Portion(n, rank, ranks)
				assert.Equal(t, next, p.Lo)
				assert.Contains(t, []int{n / ranks, n/ranks + 1}, p.Hi-p.Lo)
				for e := p.Lo; e < p.Hi; e++ {
					assert.Equal(t, rank, model.PortionOf(e, n, ranks))
				}
				next = p.Hi
			}
			assert.Equal(t, n, next)
		}
	}
}
