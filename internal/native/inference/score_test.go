package inference_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// scorers returns a scorer and a function that returns −ln p of each token but the first, by a pass
// over the whole text.
func scorers(t *testing.T, cfg model.Config, capacity int) (*inference.Scorer, func([]int32) []float64) {
	t.Helper()
	backend, mgr := cpu.New(), newManager(t)
	m, err := model.NewFrozen(cfg, backend)
	require.NoError(t, err)
	require.NoError(t, m.Init(4))
	s, err := inference.NewScorer(m, mgr, capacity)
	require.NoError(t, err)
	pass, err := m.NewPass(mgr, 1, cfg.SeqLength, false)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, pass.Close())
		assert.NoError(t, m.Close())
		assert.NoError(t, backend.Close())
	})
	return s, func(ids []int32) []float64 {
		var losses []float64
		b := model.NewBatch(1, cfg.SeqLength)
		copy(b.Tokens, ids)
		for i := range ids[1:] {
			b.Weights = make([]float32, cfg.SeqLength)
			b.Weights[i] = 1
			require.NoError(t, pass.SetBatch(b))
			loss, err := pass.Loss()
			require.NoError(t, err)
			losses = append(losses, loss)
		}
		return losses
	}
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func TestTextScores(t *testing.T) {
	const capacity = 20
	s, slow := scorers(t, llama(), capacity)
	rng := rand.New(rand.NewPCG(1, 1))
	ids := make([]int32, 57)
	for i := range ids {
		ids[i] = rng.Int32N(256)
	}
	read := func(dst []int32, from int) error {
		copy(dst, ids[from:])
		return nil
	}
	// Windows of 20 tokens, each with the first token of the next one as its last target.
	want := sum(slow(ids[:21])) + sum(slow(ids[20:41])) + sum(slow(ids[40:]))
	got, err := s.Text(t.Context(), len(ids), read, 0)
	require.NoError(t, err)
	assert.Equal(t, 56, got.Tokens)
	assert.InEpsilon(t, want, got.Nats, 1e-5)
	assert.InEpsilon(t, math.Exp(want/56), got.Perplexity(), 1e-4)

	// With a stride of 8, a token sees at least 12 others as soon as there are so many.
	want = sum(slow(ids[:21]))
	for first := 8; first+13 < len(ids); first += 8 {
		part := slow(ids[first:min(first+21, len(ids))])
		want += sum(part[12:])
	}
	got, err = s.Text(t.Context(), len(ids), read, 8)
	require.NoError(t, err)
	assert.Equal(t, 56, got.Tokens)
	assert.InEpsilon(t, want, got.Nats, 1e-5)

	_, err = s.Text(t.Context(), 1, read, 0)
	require.ErrorContains(t, err, "at least two")
	_, err = s.Text(t.Context(), 9, read, 21)
	require.ErrorContains(t, err, "stride")
}

func TestChoices(t *testing.T) {
	s, slow := scorers(t, llama(), 16)
	prompt, choices := []int32{5, 6, 7, 8}, [][]int32{{9}, {10, 11, 12}, {13, 14, 15, 16, 17, 18}}
	got, err := s.Choices(t.Context(), prompt, choices)
	require.NoError(t, err)
	for i, c := range choices {
		want := slow(append(append([]int32(nil), prompt...), c...))[len(prompt)-1:]
		assert.InEpsilon(t, sum(want), got[i].Nats, 1e-5)
		assert.Equal(t, len(c), got[i].Tokens)
	}
	one, err := s.Choices(t.Context(), prompt[3:], [][]int32{{9}})
	require.NoError(t, err)
	assert.InEpsilon(t, slow([]int32{8, 9})[0], one[0].Nats, 1e-5)

	// A query that does not fit loses its beginning.
	long := make([]int32, 40)
	got, err = s.Choices(t.Context(), long, choices)
	require.NoError(t, err)
	want := slow(append(long[:11:11], choices[2]...))[10:]
	assert.InEpsilon(t, sum(want), got[2].Nats, 1e-5)

	_, err = s.Choices(t.Context(), nil, choices)
	require.ErrorContains(t, err, "query")
	_, err = s.Choices(t.Context(), prompt, [][]int32{{1}, nil})
	require.ErrorContains(t, err, "choice 2")
	_, err = s.Choices(t.Context(), prompt, [][]int32{make([]int32, 17)})
	require.ErrorContains(t, err, "at most the 16")
}

func TestTask(t *testing.T) {
	s, slow := scorers(t, llama(), 0)
	questions, err := inference.ReadTask("task.jsonl", strings.NewReader(`{"query": "ab ", "choices": ["c", "defg"], "gold": 0, "more": 1}

{"query": "x", "choices": ["yy", "z", "wwwww"], "gold": 1}
`))
	require.NoError(t, err)
	require.Len(t, questions, 2)
	right, rightNorm := 0., 0.
	for _, q := range questions {
		query := strings.TrimRight(q.Query, " ")
		best, bestNorm := [2]float64{math.Inf(1)}, [2]float64{math.Inf(1)}
		for i, c := range q.Choices {
			nats := sum(slow(tokenizer.Byte{}.Encode(nil, []byte(q.Query+" "+c)))[len(query)-1:])
			if nats < best[0] {
				best = [2]float64{nats, float64(i)}
			}
			if norm := nats / float64(len(c)); norm < bestNorm[0] {
				bestNorm = [2]float64{norm, float64(i)}
			}
		}
		if int(best[1]) == q.Gold {
			right++
		}
		if int(bestNorm[1]) == q.Gold {
			rightNorm++
		}
	}
	got, err := s.Task(t.Context(), tokenizer.Byte{}, questions, inference.TaskSettings{Delimiter: " "})
	require.NoError(t, err)
	assert.Equal(t, 2, got.Questions)
	assert.Equal(t, right/2, got.Acc)
	assert.Equal(t, rightNorm/2, got.AccNorm)
	assert.InDelta(t, math.Sqrt(got.Acc*(1-got.Acc)), got.AccStderr, 1e-12, "of two questions")

	for give, want := range map[string]string{
		"":                                      "no questions",
		"{":                                     "line 1",
		`{"query": "a", "choices": ["b"]}`:      "choices: given 1",
		`{"query": "a", "choices": ["b", "c"]}`: "gold: want the index",
		`{"query": "a", "choices": ["b", "c"], "gold": 2}`: "from 0 to 1",
	} {
		_, err := inference.ReadTask("task.jsonl", strings.NewReader(give))
		require.ErrorContains(t, err, want, give)
	}
	_, err = s.Task(t.Context(), tokenizer.Byte{}, []inference.Question{{Choices: []string{"a", "b"}}}, inference.TaskSettings{})
	require.ErrorContains(t, err, "question 1: query")
}

func FuzzReadTask(f *testing.F) {
	f.Add(`{"query": "a", "choices": ["b", "c"], "gold": 1}`)
	f.Add("{\"choices\": [\"\", \"\"], \"gold\": 0}\n\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		defer primustest.Measured(t, len(text))()
		questions, err := inference.ReadTask("task", strings.NewReader(text))
		if err != nil {
			require.ErrorContains(t, err, "task: ")
			return
		}
		for _, q := range questions {
			require.GreaterOrEqual(t, len(q.Choices), 2)
			require.Less(t, q.Gold, len(q.Choices))
			require.GreaterOrEqual(t, q.Gold, 0)
		}
	})
}
