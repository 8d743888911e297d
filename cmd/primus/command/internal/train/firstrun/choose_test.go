package firstrun

import (
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/native/stepbench"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A longer time, a faster machine or a longer text never takes a smaller model, no model is chosen
// that the rule forbids, and none is measured that cannot be chosen.
func TestLargest(t *testing.T) {
	t.Parallel()
	const vocab = 4096
	for _, flops := range []float64{1e9, 50e9, 5e12} {
		for _, tokens := range []int64{6_000, 20_000, 1e7} {
			before := 0.0
			for limit := time.Second; limit < 10_000*time.Hour; limit *= 4 {
				measured := 0
				text := &text{vocab: vocab, tokens: tokens}
				c, r, err := largest(candidates(), text, limit, func(c candidate, sequences int) (stepbench.Result, error) {
					measured++
					perToken := 6 * c.parameters(vocab)
					if c.model != "llama_2M" {
						assert.LessOrEqual(t, 2*float64(sequences*c.seq)*perToken/flops, measuringTime.Seconds(), "measuring takes as long whatever the limit is")
					}
					return stepbench.Result{TokensPerSecond: flops / perToken, FLOPsPerToken: perToken}, nil
				})
				require.NoError(t, err)
				size := c.parameters(vocab)
				assert.GreaterOrEqual(t, size, before)
				before = size
				sees := r.TokensPerSecond * limit.Seconds() * trainingShare
				if c.model != "llama_2M" {
					assert.GreaterOrEqual(t, sees, tokensPerParameter*size)
					assert.GreaterOrEqual(t, tokens, int64(20*c.seq))
				}
				assert.LessOrEqual(t, measured, 4)
				if limit == time.Second {
					assert.LessOrEqual(t, measured, 1+map[bool]int{true: 3}[flops > 1e12], "time is not lost with models that are too large")
				}
			}
		}
	}
}

// A model that is asked for is measured for seconds, or not at all, however slow the machine is.
func TestRateOfAModelThatIsAskedFor(t *testing.T) {
	t.Parallel()
	const vocab = 4096
	for flops, computed := range map[float64]bool{1e9: true, 5e12: false} {
		c, p, err := largest(candidates()[3:], &text{vocab: vocab, tokens: 1e9}, time.Second, func(c candidate, sequences int) (stepbench.Result, error) {
			perToken := 6 * c.parameters(vocab)
			return stepbench.Result{TokensPerSecond: flops / perToken, FLOPsPerToken: perToken}, nil
		})
		require.NoError(t, err)
		assert.Equal(t, "llama_100M", c.model)
		assert.Equal(t, computed, p.computed)
		assert.InEpsilon(t, flops/(6*c.parameters(vocab)), p.TokensPerSecond, 1e-9)
	}
}

// The steps fit into the time and the text, and there are always some.
func TestLengths(t *testing.T) {
	t.Parallel()
	for _, c := range candidates() {
		for _, rate := range []float64{1, 100, 1e5} {
			for _, tokens := range []int64{int64(20 * c.seq), 1e6, 1e9} {
				for _, limit := range []time.Duration{time.Second, 10 * time.Minute, 240 * time.Hour} {
					choice := finish(Settings{Name: "n", Time: limit}, &text{tokens: tokens, vocab: 256}, c, pace{Result: stepbench.Result{TokensPerSecond: rate}})
					require.GreaterOrEqual(t, choice.Steps, fewestSteps)
					trained := float64(choice.Steps * choice.StepTokens)
					if choice.Steps > fewestSteps {
						assert.LessOrEqual(t, trained, mostEpochs*float64(tokens))
						assert.LessOrEqual(t, choice.Expected, limit)
					}
					assert.GreaterOrEqual(t, float64(tokens)*choice.validFraction, float64(2*c.seq))
					for _, p := range choice.params() {
						if n, ok := p.value.(int); ok {
							assert.Positive(t, n, p.name)
						}
					}
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"book.txt": "book", "a/b/notes/": "notes", "corpus.jsonl.zst": "corpus", "my notes.md": "my-notes", "über.txt": "ber", "日本": "text", "v1.2": "v1.2",
	} {
		assert.Equal(t, want, nameOf(given), given)
		assert.Regexp(t, names, nameOf(given))
	}
	assert.Regexp(t, names, nameOf("."))
}
