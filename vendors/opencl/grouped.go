package opencl

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
)

// groupedGemm implements gemm.TEGeneralGroupedGemm, under the conditions of genericGemm, by one
// product for each group.
func (f *gemmFamily) groupedGemm(x *opregistry.Exec, a gemm.TEGeneralGroupedGemmArgs) error {
	products := make([]product, 0, len(a.A))
	rows := 0
	for i := range a.A {
		args, err := a.Group(i, rows)
		if err != nil {
			return err
		}
		p, err := f.view(x, args)
		if err != nil {
			return err
		}
		m, _, _ := args.Dims()
		rows += m
		if p.device != nil {
			products = append(products, p)
		}
	}
	for i := range products {
		if err := products[i].queue(); err != nil {
			return err
		}
	}
	return nil
}
