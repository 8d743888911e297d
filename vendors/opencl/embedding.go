package opencl

import (
	_ "embed"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
)

//go:embed embedding.cl
var embeddingSource string

var embeddingProgram = NewProgram("embedding", embeddingSource, []string{"X", "Y"}, IndexFlags)

// chains bounds the work-items that link positions, each of which reads all indices.
const (
	cpuChains = 16
	gpuChains = 4096
)

// embeddingImpls returns the impls of the family.
func embeddingImpls() []opregistry.Impl {
	return []opregistry.Impl{
		Impl(embedding.EmbeddingFwd, embeddingForward, Storage),
		Impl(embedding.EmbeddingBwd, embeddingBackward, Storage),
	}
}

func embeddingForward(e *opregistry.Exec, a embedding.EmbeddingFwdArgs) error {
	c := Begin(e)
	table, out, index := c.Rows("weight", a.Weight), c.Rows("output", a.Output), c.Index("indices", a.Indices)
	if c.Err != nil {
		return c.Err
	}
	l := c.Kernel(embeddingProgram, "embed_fwd", Types{a.Weight.DType()}, index).Vec(a.Indices).Mat(table, out)
	return l.Rows(out.Rows, out.Cols).U32(table.Rows).Run()
}

// embeddingBackward links the positions of each index and then adds up the rows along each chain,
// so that no two groups write to one row.
func embeddingBackward(e *opregistry.Exec, a embedding.EmbeddingBwdArgs) error {
	c := Begin(e)
	grad, dw, index := c.Rows("grad", a.Grad), c.Rows("dweight", a.DWeight), c.Index("indices", a.Indices)
	if c.Err != nil || dw.Rows == 0 || dw.Cols == 0 {
		return c.Err
	}
	links, err := c.Scratch(dw.Rows + grad.Rows)
	if err != nil {
		return err
	}
	defer links.Release()
	head, next := links.At(0), links.At(dw.Rows)
	types := Types{a.Grad.DType(), a.DWeight.DType()}
	l := c.Kernel(embeddingProgram, "embed_chain", types, index).Vec(a.Indices, head, next)
	span := max(CeilDiv(dw.Rows, gpuChains), 1)
	if l.Group() == 1 {
		span = CeilDiv(dw.Rows, cpuChains)
	}
	if err := l.U32(grad.Rows, dw.Rows, span).RunGroups(CeilDiv(CeilDiv(dw.Rows, span), l.Group()), 1); err != nil {
		return err
	}
	l = c.Kernel(embeddingProgram, "embed_bwd", types, index).Vec(head, next).Mat(grad, dw)
	return l.Rows(dw.Rows, dw.Cols).Bool(a.Accumulate).Run()
}
