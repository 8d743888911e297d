package model

import (
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/tensor"
)

// Logits runs the model over tokens of one sequence, padded to the length of the pass, and returns
// the scores of the token that follows position at. The slice is valid until the next call.
func (p *Pass) Logits(tokens []int32, at int) ([]float32, error) {
	if err := p.setDocuments(Batch{}); err != nil {
		panic(err)
	}
	input := tensor.Data[int32](p.embedding.Indices)
	clear(input)
	copy(input, tokens)
	r := p.run()
	p.forward(r)
	if r.Err != nil {
		return nil, r.Err
	}
	vocab := p.m.cfg.VocabSize
	logits := p.entropy.Logits
	if logits.DType() == tensor.F32 {
		return tensor.Data[float32](logits)[at*vocab : (at+1)*vocab], nil
	}
	scores := make([]float32, vocab)
	for i, v := range memory.Rows(logits, at, at+1).Float64s() {
		scores[i] = float32(v)
	}
	return scores, nil
}
