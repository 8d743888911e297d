package native

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/primus-fl/primus/runtime/backends/native/data"
)

// sampleLength is the number of bytes of generated text at the end of a run.
const sampleLength = 200

// sampleTemperature divides the scores; below 1 favours likely bytes.
const sampleTemperature = 0.8

// generate returns text that the model writes, byte by byte, after a prompt, or errGivenUp when ctx ends before.
func (t *trainer) generate(ctx context.Context) (text string, err error) {
	pass, err := t.model.NewPass(t.tc.Manager, 1, t.args.SeqLength, false)
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := pass.Close(); err == nil {
			err = closeErr
		}
	}()
	rng := rand.New(rand.NewPCG(uint64(t.args.Seed), uint64(t.state.Step)))
	tok := data.ByteTokenizer{}
	tokens := tok.Encode(nil, []byte("func "))
	for range sampleLength {
		if ctx.Err() != nil {
			return "", errGivenUp
		}
		window := tokens[max(0, len(tokens)-t.args.SeqLength):]
		scores, err := pass.Logits(window, len(window)-1)
		if err != nil {
			return "", err
		}
		tokens = append(tokens, sample(rng, scores[:tok.VocabSize()]))
	}
	return string(tok.Decode(nil, tokens)), nil
}

// sample draws an index with probability proportional to exp(score/temperature).
func sample(rng *rand.Rand, scores []float32) int32 {
	most := math.Inf(-1)
	for _, s := range scores {
		most = max(most, float64(s))
	}
	sum := 0.0
	for _, s := range scores {
		sum += math.Exp((float64(s) - most) / sampleTemperature)
	}
	left := rng.Float64() * sum
	for i, s := range scores {
		if left -= math.Exp((float64(s) - most) / sampleTemperature); left <= 0 {
			return int32(i)
		}
	}
	return int32(len(scores) - 1)
}
