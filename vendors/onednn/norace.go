//go:build !race

package onednn

import "github.com/primus-fl/primus/tensor"

func annotate(_, _ []*tensor.Tensor) {}
