package data_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/tensor"
)

// counted has 65536 ids: two bytes of text are one token.
type counted struct{ tokenizer.Byte }

func (counted) Name() string { return "counted" }

func (counted) VocabSize() int { return 1 << 16 }

func (counted) Encode(dst []int32, text []byte) []int32 {
	for i := 0; i+1 < len(text); i += 2 {
		dst = append(dst, int32(text[i])|int32(text[i+1])<<8)
	}
	return dst
}

// stream returns the tokens 0x0101, 0x0102, … so that each token tells its place.
func stream(t *testing.T, n int) (*data.Tokens, []int32) {
	t.Helper()
	text := make([]byte, 0, 2*n)
	for i := range n {
		text = append(text, byte(1+i%255), byte(1+i/255))
	}
	require.Less(t, n, 255*255)
	path := filepath.Join(t.TempDir(), "corpus")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	tokens, _, err := loadCorpus(t.Context(), data.Settings{Settings: corpus.Settings{Path: path}, Tokenizer: counted{}})
	require.NoError(t, err)
	require.Equal(t, n, tokens.Len())
	ids := make([]int32, n)
	require.NoError(t, tokens.Read(ids, 0))
	return tokens, ids
}

func newSet(t *testing.T, tokens *data.Tokens, seq int, valid float64) *data.Set {
	t.Helper()
	set, err := data.NewSet(tokens, data.SplitSettings{SeqLength: seq, ValidFraction: valid})
	require.NoError(t, err)
	return set
}

func TestEpochsVisitEveryWindowOnceAndValidationIsApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		tokens  int
		seq     int
		valid   float64
		wantAll int // windows, at least
	}{
		{"one window of each", 18, 8, 0.01, 2},
		{"training only", 9, 8, 0, 1},
		{"short", 1000, 16, 0.1, 55},
		{"seq of one", 1000, 1, 0.25, 490},
		{"several windows a block", 60000, 16, 0.05, 3700},
		{"half for validation", 5000, 32, 0.5, 140},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tokens, ids := stream(t, tt.tokens)
			place := make(map[int32]int, len(ids))
			for i, id := range ids {
				place[id] = i
			}
			set := newSet(t, tokens, tt.seq, tt.valid)
			assert.GreaterOrEqual(t, set.TrainWindows()+set.ValidWindows(), tt.wantAll)
			width := tt.seq + 1
			starts := func(batch func([]int32) error, n int) []int {
				out := make([]int, n)
				window := make([]int32, width)
				for i := range out {
					require.NoError(t, batch(window))
					out[i] = place[window[0]]
					require.Equal(t, ids[out[i]:out[i]+width], window, "a window is a run of the stream")
				}
				return out
			}

			sampler := data.NewSampler(set.Train(), 1)
			first := starts(sampler.Batch, set.TrainWindows())
			second := starts(sampler.Batch, set.TrainWindows())
			assert.ElementsMatch(t, first, second)
			if len(first) > 20 {
				assert.NotEqual(t, first, second, "each epoch has its own order")
				assert.False(t, slices.IsSorted(first))
			}
			slices.Sort(first)
			assert.Equal(t, first, slices.Compact(slices.Clone(first)), "no window twice an epoch")
			assert.EqualValues(t, 2*set.TrainWindows(), sampler.Position())

			used := make([]bool, len(ids))
			for _, s := range first {
				for i := s; i < s+width; i++ {
					used[i] = true
				}
			}
			if tt.valid == 0 {
				assert.Zero(t, set.ValidWindows())
				return
			}
			v, err := data.NewValidation(set.Valid(), 0)
			require.NoError(t, err)
			held := starts(v.Batch, v.Len())
			assert.Len(t, slices.Compact(slices.Sorted(slices.Values(held))), set.ValidWindows())
			for _, s := range held {
				assert.NotContains(t, used[s:s+width], true, "validation shares no token with training")
			}
			assert.Equal(t, held, starts(v.Batch, v.Len()), "the same windows again")
			part := float64(set.ValidWindows()) / float64(set.ValidWindows()+set.TrainWindows())
			if set.TrainWindows() > 20 {
				assert.InDelta(t, tt.valid, part, 0.03)
			}
		})
	}
}

func TestResumeBySeek(t *testing.T) {
	t.Parallel()
	tokens, _ := stream(t, 3000)
	set := newSet(t, tokens, 16, 0.1)
	const rows, steps = 3, 150 // a little over two epochs
	batch := func(s *data.Sampler) []int32 {
		dst := make([]int32, rows*17)
		require.NoError(t, s.Batch(dst))
		return dst
	}
	whole := data.NewSampler(set.Train(), 42)
	var want [][]int32
	for range steps {
		want = append(want, batch(whole))
	}
	assert.Equal(t, uint64(rows*steps), whole.Position())
	assert.Greater(t, rows*steps, 2*set.TrainWindows(), "more than two epochs")
	for _, at := range []int{0, 1, 57, 119, steps - 1} {
		resumed := data.NewSampler(set.Train(), 42)
		resumed.Seek(uint64(rows * at))
		for i := at; i < steps; i++ {
			require.Equal(t, want[i], batch(resumed), "resumed at %d, batch %d", at, i)
		}
	}
	back := whole
	back.Seek(0)
	assert.Equal(t, want[0], batch(back))

	// One batch of six samples is two of three: gradient accumulation changes nothing.
	big := make([]int32, 2*rows*17)
	require.NoError(t, data.NewSampler(set.Train(), 42).Batch(big))
	assert.Equal(t, append(slices.Clone(want[0]), want[1]...), big)

	assert.NotEqual(t, want[0], batch(data.NewSampler(set.Train(), 43)), "another seed, another order")
}

func TestTheOrderNeverChanges(t *testing.T) {
	t.Parallel()
	tokens, ids := stream(t, 400)
	sampler := data.NewSampler(newSet(t, tokens, 16, 0).Train(), 1234)
	got := make([]int, 8)
	window := make([]int32, 17)
	for i := range got {
		require.NoError(t, sampler.Batch(window))
		got[i] = slices.Index(ids, window[0]) / 17
	}
	// Written down from the first version: a run that is resumed by a later one
	// must see the same batches.
	assert.Equal(t, []int{15, 20, 3, 0, 17, 1, 21, 10}, got)
}

func TestValidationIsSpreadEvenly(t *testing.T) {
	t.Parallel()
	tokens, ids := stream(t, 60000)
	set := newSet(t, tokens, 16, 0.1)
	v, err := data.NewValidation(set.Valid(), 8)
	require.NoError(t, err)
	require.Equal(t, 8, v.Len())
	dst := make([]int32, 8*17)
	require.NoError(t, v.Batch(dst))
	first, last := slices.Index(ids, dst[0]), slices.Index(ids, dst[7*17])
	assert.Less(t, first, 6000)
	assert.Greater(t, last, 48000)

	again := make([]int32, 3*17)
	require.NoError(t, v.Batch(again))
	assert.Equal(t, dst[:3*17], again)
	v.Reset()
	require.NoError(t, v.Batch(again))
	assert.Equal(t, dst[:3*17], again)

	all, err := data.NewValidation(set.Valid(), 1<<40)
	require.NoError(t, err)
	assert.Equal(t, set.ValidWindows(), all.Len())
	_, err = data.NewValidation(set.Valid(), -1)
	require.ErrorContains(t, err, "-1")
	_, err = data.NewValidation(newSet(t, tokens, 16, 0).Valid(), 1)
	require.ErrorContains(t, err, "without validation windows")
}

func TestBadSplits(t *testing.T) {
	t.Parallel()
	tokens, _ := stream(t, 100)
	for _, tt := range []struct {
		name string
		give data.SplitSettings
		want string
	}{
		{"no sequence", data.SplitSettings{}, "seq_length 0"},
		{"negative sequence", data.SplitSettings{SeqLength: -1}, "seq_length -1"},
		{"fraction of one", data.SplitSettings{SeqLength: 4, ValidFraction: 1}, "fraction of 1"},
		{"negative fraction", data.SplitSettings{SeqLength: 4, ValidFraction: -0.1}, "fraction of -0.1"},
		{"training too long", data.SplitSettings{SeqLength: 100}, "given 100 tokens, want at least 101 for one training window"},
		{"both too long", data.SplitSettings{SeqLength: 50, ValidFraction: 0.1}, "given 100 tokens, want at least 102 for one training and one validation window of seq_length+1 = 51"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := data.NewSet(tokens, tt.give)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := data.NewSet(tokens, data.SplitSettings{SeqLength: 100})
	var short *data.TooShortError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, data.TooShortError{Have: 100, Need: 101, SeqLength: 100}, *short)
	assert.Equal(t, 1, newSet(t, tokens, 99, 0).TrainWindows())
	set := newSet(t, tokens, 49, 0.001)
	assert.Equal(t, 1, set.TrainWindows())
	assert.Equal(t, 1, set.ValidWindows())
}

func TestBadBatchBuffers(t *testing.T) {
	t.Parallel()
	tokens, _ := stream(t, 100)
	set := newSet(t, tokens, 8, 0.1)
	v, err := data.NewValidation(set.Valid(), 0)
	require.NoError(t, err)
	s := data.NewSampler(set.Train(), 0)
	for _, n := range []int{0, 8, 10} {
		require.ErrorContains(t, s.Batch(make([]int32, n)), "multiple of seq_length+1 = 9")
		require.ErrorContains(t, v.Batch(make([]int32, n)), "multiple of seq_length+1 = 9")
	}
	assert.Zero(t, s.Position())
}

func TestBatchesDoNotAllocate(t *testing.T) {
	tokens, _ := stream(t, 1000)
	set := newSet(t, tokens, 8, 0.1)
	v, err := data.NewValidation(set.Valid(), 0)
	require.NoError(t, err)
	s := data.NewSampler(set.Train(), 7)
	dst := make([]int32, 9*4)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if s.Batch(dst) != nil || v.Batch(dst) != nil {
			panic("batch")
		}
	}))
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	tokens, _ := stream(t, 1000)
	other, _ := stream(t, 1001)
	a := newSet(t, tokens, 8, 0.1)
	assert.Equal(t, a.Fingerprint(), newSet(t, tokens, 8, 0.1).Fingerprint())
	for _, b := range []*data.Set{newSet(t, tokens, 9, 0.1), newSet(t, tokens, 8, 0.3), newSet(t, other, 8, 0.1)} {
		assert.NotEqual(t, a.Fingerprint(), b.Fingerprint())
	}
}

func TestDumpBatches(t *testing.T) {
	t.Parallel()
	tokens, _ := stream(t, 1000)
	set := newSet(t, tokens, 8, 0.1)
	s := data.NewSampler(set.Train(), 7)
	s.Seek(5)
	path := filepath.Join(t.TempDir(), "batches.safetensors")
	require.NoError(t, data.DumpBatches(t.Context(), path, s, 30, 4))
	assert.Equal(t, uint64(5), s.Position())

	f, err := safetensors.Open(t.Context(), path)
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, map[string]string{"position": "5", "seed": "7", "fingerprint": set.Fingerprint()}, f.Metadata())
	got, shape, err := safetensors.Read[int32](f, "batches")
	require.NoError(t, err)
	assert.Equal(t, tensor.Shape{30, 4, 9}, shape)
	want := make([]int32, 30*4*9)
	require.NoError(t, s.Batch(want))
	assert.Equal(t, want, got)

	for _, bad := range [][2]int{{0, 1}, {1, 0}} {
		require.ErrorContains(t, data.DumpBatches(t.Context(), path, s, bad[0], bad[1]), "1 or more")
	}
	require.ErrorContains(t, data.DumpBatches(t.Context(), filepath.Join(path, "x"), s, 1, 1), "dump_batches")
}
