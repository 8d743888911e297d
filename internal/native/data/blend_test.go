package data_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"

	"github.com/primus-fl/primus/internal/primustest"
)

// streamsOf returns sets whose tokens all have one value: 0 in the first, 1 in the second, …
func streamsOf(t *testing.T, sizes ...int) []*data.Set {
	t.Helper()
	var sets []*data.Set
	for i, size := range sizes {
		root := tree(t, map[string]string{"a": strings.Repeat(string(rune(i)+1), size)})
		tokens, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: root}})
		require.NoError(t, err)
		sets = append(sets, newSet(t, tokens, 4, 0.2))
	}
	return sets
}

func trainOf(sets []*data.Set) (all []*data.Blend) {
	for _, s := range sets {
		all = append(all, s.Train())
	}
	return all
}

func TestBlendKeepsProportions(t *testing.T) {
	t.Parallel()
	sets := streamsOf(t, 1000, 300, 500, 40)
	for _, weights := range [][]float64{{1, 1, 1, 1}, {0.7, 0.2, 0.05, 0.05}, {70, 20, 5, 5}, {1e-3, 1, 2, 3}} {
		b, err := data.Mix(trainOf(sets), weights)
		require.NoError(t, err)
		s := data.NewSampler(b, 5)
		total := 0.0
		for _, w := range weights {
			total += w
		}
		counts := make([]float64, len(weights))
		row := make([]int32, 5)
		for n := 1.0; n <= 4000; n++ {
			require.NoError(t, s.Batch(row))
			counts[row[0]-1]++
			for i, w := range weights {
				require.InDelta(t, n*w/total, counts[i], 2.5, "part %d of %v after %v samples", i, weights, n)
			}
		}
	}
}

// A Blend of Blends has the parts in the products of the weights.
func TestBlendOfBlends(t *testing.T) {
	t.Parallel()
	parts := trainOf(streamsOf(t, 500, 500, 500))
	inner, err := data.Mix(parts[:2], []float64{3, 1})
	require.NoError(t, err)
	b, err := data.Mix([]*data.Blend{inner, parts[2]}, []float64{1, 1})
	require.NoError(t, err)
	s, row, counts := data.NewSampler(b, 0), make([]int32, 5), [3]int{}
	for range 800 {
		require.NoError(t, s.Batch(row))
		counts[row[0]-1]++
	}
	assert.InDeltaSlice(t, []int{300, 100, 400}, counts[:], 2)
}

// Sampling goes on in the middle of a blend as if it had not stopped, and visits every window of a
// part once before any of them again.
func TestBlendResumes(t *testing.T) {
	t.Parallel()
	var blends []*data.Blend
	for i, size := range []int{900, 700} {
		var b strings.Builder
		for j := 0; b.Len() < size; j++ {
			fmt.Fprintf(&b, "%c%04d", 'a'+i, j)
		}
		tokens, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: tree(t, map[string]string{"a": b.String()})}})
		require.NoError(t, err)
		blends = append(blends, newSet(t, tokens, 5, 0).Train())
	}
	b, err := data.Mix(blends, []float64{2, 1})
	require.NoError(t, err)
	whole := data.NewSampler(b, 11)
	var want [][]int32
	seen := map[string]int{}
	for range 600 {
		row := make([]int32, 6)
		require.NoError(t, whole.Batch(row))
		want = append(want, row)
	}
	firsts := 0
	for _, row := range want {
		if slices.Contains(row, 'a') {
			if firsts++; firsts <= blends[0].Len() {
				seen[fmt.Sprint(row)]++
			}
		}
	}
	assert.Len(t, seen, blends[0].Len(), "the first epoch of a part has every window once")
	for _, at := range []int{1, 2, 299, 300, 599} {
		resumed := data.NewSampler(b, 11)
		resumed.Seek(uint64(at))
		row := make([]int32, 6)
		require.NoError(t, resumed.Batch(row))
		assert.Equal(t, want[at], row, at)
	}
}

func TestValidationOfABlend(t *testing.T) {
	t.Parallel()
	sets := streamsOf(t, 1000, 1000, 60)
	var valid []*data.Blend
	for _, s := range sets {
		valid = append(valid, s.Valid())
	}
	b, err := data.Mix(valid, []float64{1, 2, 1})
	require.NoError(t, err)
	count := func(limit int) [3]int {
		v, err := data.NewValidation(b, limit)
		require.NoError(t, err)
		counts, row := [3]int{}, make([]int32, 5)
		for range v.Len() {
			require.NoError(t, v.Batch(row))
			counts[row[0]-1]++
		}
		return counts
	}
	assert.Equal(t, [3]int{2, 4, 2}, count(8))
	few := count(40)
	assert.Equal(t, 40, few[0]+few[1]+few[2])
	assert.Equal(t, sets[2].ValidWindows(), few[2], "the small set gives all that it has")
	assert.Equal(t, [3]int{sets[0].ValidWindows(), sets[1].ValidWindows(), sets[2].ValidWindows()}, count(0))
}

func TestBadBlends(t *testing.T) {
	t.Parallel()
	sets := streamsOf(t, 100, 100)
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		_, err := data.Mix(trainOf(sets), []float64{1, w})
		require.ErrorContains(t, err, "want a number > 0", w)
	}
	_, err := data.Mix(trainOf(sets), []float64{1})
	require.ErrorContains(t, err, "2 sets and 1 weights")
	_, err = data.Mix([]*data.Blend{sets[0].Train(), sets[0].Test()}, []float64{1, 1})
	require.ErrorContains(t, err, "set 2 has 0 windows")
}

func TestParseBlend(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]data.Component{
		"":                   {{Weight: 1}},
		"a":                  {{1, "a"}},
		"a file with spaces": {{1, "a file with spaces"}},
		"0.7 a 0.3 b":        {{0.7, "a"}, {0.3, "b"}},
		" 70\ta 30  b*.txt ": {{70, "a"}, {30, "b*.txt"}},
		"0.5":                {{1, "0.5"}},
	} {
		got, err := data.ParseBlend(spec)
		require.NoError(t, err, spec)
		assert.Equal(t, want, got, spec)
	}
	for spec, want := range map[string]string{
		"0.7 a 0.3":      "want a weight before each path",
		"0.7 a b c":      `given "b" before c, want a weight > 0`,
		"0 a 1 b":        `given "0" before a`,
		"-1 a":           `given "-1" before a`,
		"nan a 1 b":      `given "nan" before a`,
		"0.7 my file b ": `given "file" before b`,
	} {
		_, err := data.ParseBlend(spec)
		require.ErrorContains(t, err, want, spec)
	}
}

// FuzzParseBlend: what is accepted is written and read again without a change.
//
// Oracle: round trip.
func FuzzParseBlend(f *testing.F) {
	f.Add("0.7 a 0.3 b")
	f.Add("1e3 x")
	f.Add("a b")
	f.Fuzz(func(t *testing.T, spec string) {
		defer primustest.Measured(t, len(spec))()
		got, err := data.ParseBlend(spec)
		if err != nil || len(got) == 1 && got[0].Path == spec {
			return
		}
		var words []string
		for _, c := range got {
			assert.Positive(t, c.Weight)
			words = append(words, c.String())
		}
		again, err := data.ParseBlend(strings.Join(words, " "))
		require.NoError(t, err)
		assert.Equal(t, got, again)
	})
}
