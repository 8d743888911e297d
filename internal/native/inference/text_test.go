package inference

import (
	"testing"

	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/stretchr/testify/assert"
)

func TestTextStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		give  string
		stops []string
		want  []string // after each byte, and at the end
		ended bool
	}{
		"letters":                       {"abc", nil, []string{"a", "b", "c", ""}, false},
		"a character comes whole":       {"a\u00e9\U0001F600!", nil, []string{"a", "", "\u00e9", "", "", "", "\U0001F600", "!", ""}, false},
		"bytes that are no UTF-8":       {"a\xe2\x82b\xff", nil, []string{"a", "", "", "\uFFFDb", "\uFFFD", ""}, false},
		"a character without its end":   {"a\xf0\x9f", nil, []string{"a", "", "", "\uFFFD"}, false},
		"a stop string is not returned": {"one\n\ntwo", []string{"\n\n"}, []string{"o", "n", "e", "", ""}, true},
		"the beginning of one":          {"a\nb\n", []string{"\n\n"}, []string{"a", "", "\nb", "", "\n"}, false},
		"the first of several":          {"xEND", []string{"ND", "END"}, []string{"x", "", "", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTextStream(tokenizer.Byte{}, []int32{'p', 0xe2}, tt.stops)
			var got []string
			for _, b := range []byte(tt.give) {
				got = append(got, string(s.add(int32(b))))
				if s.ended {
					break
				}
			}
			if got = append(got, string(s.rest())); tt.ended {
				got = got[:len(got)-1]
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.ended, s.ended)
		})
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()
	count := func(s Sampling, logits ...float32) []int {
		n := make([]int, len(logits))
		sampler := newSampler(s)
		for range 2000 {
			n[sampler.next(logits)]++
		}
		return n
	}
	assert.Equal(t, []int{0, 2000, 0}, count(Sampling{}, 1, 3, 3))
	assert.InDeltaSlice(t, []int{500, 1500}, count(Sampling{Temperature: 1}, 0, 1.0986), 100)
	assert.InDeltaSlice(t, []int{200, 1800}, count(Sampling{Temperature: 0.5}, 0, 1.0986), 80, "odds of 1 to 9")
	assert.InDeltaSlice(t, []int{0, 500, 1500}, count(Sampling{Temperature: 1, TopK: 2}, -0.1, 0, 1.0986), 100)
	assert.Equal(t, []int{0, 2000, 0}, count(Sampling{Temperature: 1, TopP: 0.5}, 0, 3, 0))
	assert.InDeltaSlice(t, []int{1000, 1000, 0}, count(Sampling{Temperature: 1, TopP: 0.6}, 1, 1, 0.5), 120)
	_, top := logprobs([]float32{0, 2, 1, 2}, 0, 3)
	assert.Equal(t, []int32{1, 3, 2}, []int32{top[0].ID, top[1].ID, top[2].ID})
}
