package inference

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how a token is chosen from the logits. The zero value takes the most likely token.
type Sampling struct {
	Temperature float64 // divides the logits; 0 takes the largest, the first of several
	TopK        int     // only the k most likely tokens; 0 means all
	TopP        float64 // only the most likely tokens that together have this probability; 0 means 1
	Seed        uint64  // the same seed chooses the same tokens of the same logits
}

// maxTemperature is the largest temperature: above it tokens are drawn almost at random.
const maxTemperature = 2

// Validate returns the first fault.
func (s Sampling) Validate() error {
	switch {
	case !(s.Temperature >= 0 && s.Temperature <= maxTemperature):
		return &RequestError{"temperature", fmt.Sprintf("given %v, want a number from 0 to %d", s.Temperature, maxTemperature)}
	case s.TopK < 0:
		return &RequestError{"top_k", fmt.Sprintf("given %d, want a number >= 1, or 0 for all tokens", s.TopK)}
	case !(s.TopP >= 0 && s.TopP <= 1):
		return &RequestError{"top_p", fmt.Sprintf("given %v, want a probability above 0, at most 1", s.TopP)}
	}
	return nil
}

// sampler draws tokens of one sequence.
type sampler struct {
	Sampling
	rng    *rand.Rand
	scores []score
}

type score struct {
	id     int32
	weight float64
}

func newSampler(s Sampling) *sampler {
	return &sampler{Sampling: s, rng: rand.New(rand.NewPCG(s.Seed, 0x853c49e6748fea9b))}
}

// next chooses a token.
func (s *sampler) next(logits []float32) int32 {
	best := largest(logits)
	if s.Temperature == 0 || s.TopK == 1 {
		return best
	}
	s.scores = s.scores[:0]
	for id, v := range logits {
		if w := math.Exp((float64(v) - float64(logits[best])) / s.Temperature); w > 0 {
			s.scores = append(s.scores, score{int32(id), w})
		}
	}
	limited := s.TopK > 0 && s.TopK < len(s.scores)
	if limited || s.TopP > 0 && s.TopP < 1 {
		slices.SortFunc(s.scores, func(a, b score) int {
			return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
		})
	}
	if limited {
		s.scores = s.scores[:s.TopK]
	}
	total := 0.0
	for _, x := range s.scores {
		total += x.weight
	}
	if s.TopP > 0 && s.TopP < 1 {
		reached := 0.0
		for i, x := range s.scores {
			if reached += x.weight; reached >= s.TopP*total {
				s.scores, total = s.scores[:i+1], reached
				break
			}
		}
	}
	left := s.rng.Float64() * total
	for _, x := range s.scores {
		if left -= x.weight; left < 0 {
			return x.id
		}
	}
	return s.scores[len(s.scores)-1].id
}

// largest returns the index of the largest value, the first of several; NaN is never the largest.
func largest(values []float32) int32 {
	best := 0
	for i, v := range values {
		if v > values[best] || values[best] != values[best] {
			best = i
		}
	}
	return int32(best)
}

// Logprob is a token with the logarithm of its probability, before temperature and limits.
type Logprob struct {
	ID      int32
	Logprob float64
}

// logprobs returns the log probability of a token and the n most likely tokens, the likeliest
// first.
func logprobs(logits []float32, id int32, n int) (Logprob, []Logprob) {
	most := float64(logits[largest(logits)])
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - most)
	}
	norm := most + math.Log(sum)
	of := func(id int32) Logprob { return Logprob{id, float64(logits[id]) - norm} }
	var top []Logprob
	for i := range logits {
		x := of(int32(i))
		if len(top) == n && (n == 0 || x.Logprob <= top[n-1].Logprob) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, x, func(a, b Logprob) int {
			return cmp.Or(cmp.Compare(b.Logprob, a.Logprob), cmp.Compare(a.ID, b.ID))
		})
		top = slices.Insert(top, at, x)
		top = top[:min(len(top), n)]
	}
	return of(id), top
}
