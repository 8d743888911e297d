package native

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/runtime/backends/native/batch"
)

// sampleLength is the number of tokens of generated text at the end of a run.
const sampleLength = 200

// sampleTemperature divides the scores; below 1 favours likely tokens.
const sampleTemperature = 0.8

// generate lets the model continue a prompt, token by token, and keeps both. It returns errGivenUp
// if ctx ends first.
func (t *trainer) generate(ctx context.Context) (err error) {
	prompt, err := t.choosePrompt()
	if err != nil {
		return err
	}
	pass, err := t.model.NewPass(t.tc.Manager, 1, t.args.SeqLength, false)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := pass.Close(); err == nil {
			err = closeErr
		}
	}()
	rng := rand.New(rand.NewPCG(uint64(t.args.Seed), uint64(t.state.Step)))
	tok := t.args.tokenizer
	tokens := tok.Encode(nil, []byte(prompt))
	var end []int32 // of an answer
	if t.examples != nil {
		end = t.examples.End()
	}
	for n := range sampleLength {
		if len(end) > 0 && n >= len(end) && slices.Equal(tokens[len(tokens)-len(end):], end) {
			break
		}
		if ctx.Err() != nil {
			return errGivenUp
		}
		window := tokens[max(0, len(tokens)-t.args.SeqLength):]
		scores, err := pass.Logits(window, len(window)-1)
		if err != nil {
			return err
		}
		tokens = append(tokens, sample(rng, scores[:tok.VocabSize()]))
	}
	t.prompt, t.sample = prompt, string(tok.Decode(nil, tokens))
	return nil
}

// choosePrompt returns sample_prompt or, if that is empty, the first words of a line of the text
// held out for evaluation, or of the training text if none is held out.
func (t *trainer) choosePrompt() (string, error) {
	if t.args.SamplePrompt != "" {
		return t.args.SamplePrompt, nil
	}
	if t.examples != nil {
		return string(t.args.tokenizer.Decode(nil, t.examples.Prompt())), nil
	}
	row := batch.New(1, t.args.SeqLength)
	var err error
	if t.valid != nil {
		t.valid.windows.Reset()
		err = t.valid.windows.Batch(&row)
	} else {
		at := t.sampler.Position()
		t.sampler.Seek(0)
		err = t.sampler.Batch(&row)
		t.sampler.Seek(at)
	}
	return firstWords(string(t.args.tokenizer.Decode(nil, row.Tokens))), err
}

// Limits of a prompt taken from text: the shortest line that is used, and the longest prompt.
const (
	minLine   = 8
	maxPrompt = 24
)

// firstWords returns the beginning of the first whole line of text that is long enough. Without
// such a line it returns the beginning of the text from its second word on, since the first word
// may be incomplete.
func firstWords(text string) string {
	chosen := strings.TrimSpace(text)
	if _, rest, found := strings.Cut(text, " "); found {
		chosen = strings.TrimSpace(rest)
	}
	_, rest, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			chosen = line
			break
		}
	}
	if len(chosen) > maxPrompt {
		cut := strings.LastIndexByte(chosen[:maxPrompt+1], ' ')
		if cut < minLine {
			cut = maxPrompt
		}
		chosen = chosen[:cut]
	}
	for chosen != "" {
		if r, size := utf8.DecodeLastRuneInString(chosen); r != utf8.RuneError || size != 1 {
			return chosen // no character is split
		}
		chosen = chosen[:len(chosen)-1]
	}
	return "\n"
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
