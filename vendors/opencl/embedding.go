package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
)

//go:embed embedding.cl
var embeddingSource string

var embeddingProgram = newProgram("embedding", embeddingSource, []string{"X", "Y"}, indexFlags)

// chains bounds the work-items that link positions, each of which reads all indices.
const (
	cpuChains = 16
	gpuChains = 4096
)

// embeddingImpls returns the impls of the family.
func embeddingImpls() []opregistry.Impl {
	return []opregistry.Impl{
		openclImpl(embedding.EmbeddingFwd, embeddingForward, Storage),
		openclImpl(embedding.EmbeddingBwd, embeddingBackward, Storage),
	}
}

func embeddingForward(e *opregistry.Exec, a embedding.EmbeddingFwdArgs) error {
	c := begin(e)
	table, out, index := c.rows("weight", a.Weight), c.rows("output", a.Output), c.index("indices", a.Indices)
	if c.Err != nil {
		return c.Err
	}
	l := c.kernel(embeddingProgram, "embed_fwd", typeList{a.Weight.DType()}, index).vec(a.Indices).mat(table, out)
	return l.groupRows(out.Rows, out.Cols).u32(table.Rows).Run()
}

// embeddingBackward links the positions of each index and then adds up the rows along each chain,
// so that no two groups write to one row.
func embeddingBackward(e *opregistry.Exec, a embedding.EmbeddingBwdArgs) error {
	c := begin(e)
	grad, dw, index := c.rows("grad", a.Grad), c.rows("dweight", a.DWeight), c.index("indices", a.Indices)
	if c.Err != nil || dw.Rows == 0 || dw.Cols == 0 {
		return c.Err
	}
	links, err := c.scratch(dw.Rows + grad.Rows)
	if err != nil {
		return err
	}
	defer links.Release()
	head, next := links.At(0), links.At(dw.Rows)
	types := typeList{a.Grad.DType(), a.DWeight.DType()}
	l := c.kernel(embeddingProgram, "embed_chain", types, index).vec(a.Indices, head, next)
	span := max(ceilDiv(dw.Rows, gpuChains), 1)
	if l.groupSize() == 1 {
		span = ceilDiv(dw.Rows, cpuChains)
	}
	if err := l.u32(grad.Rows, dw.Rows, span).runGroups(ceilDiv(ceilDiv(dw.Rows, span), l.groupSize()), 1); err != nil {
		return err
	}
	l = c.kernel(embeddingProgram, "embed_bwd", types, index).vec(head, next).mat(grad, dw)
	return l.groupRows(dw.Rows, dw.Cols).bool(a.Accumulate).Run()
}
