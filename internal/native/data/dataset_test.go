package data_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/indexed"
)

func open(t *testing.T, c data.SourceConfig, s data.PlanSettings) (*data.Dataset, []data.Report, error) {
	t.Helper()
	plan, err := data.NewPlan(t.Context(), c, s)
	if err != nil {
		return nil, nil, err
	}
	if err := plan.Check(); err != nil {
		return nil, nil, err
	}
	var reports []data.Report
	d, err := plan.Load(t.Context(), func(r data.Report) { reports = append(reports, r) })
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, d.Close()) })
	}
	return d, reports, err
}

func index(t *testing.T, documents ...[]int32) (prefix string) {
	t.Helper()
	prefix = filepath.Join(t.TempDir(), "set")
	require.NoError(t, indexed.Write(prefix, indexed.Uint16, false, func(w *indexed.Writer) error {
		for _, d := range documents {
			if err := w.Add(d); err != nil {
				return err
			}
			w.EndDocument()
		}
		return nil
	}))
	return prefix
}

// windows returns the first token of each window of a Blend, with how often it occurs.
func windows(t *testing.T, b *data.Blend) map[int32]int {
	t.Helper()
	v, err := data.NewValidation(b, 0)
	require.NoError(t, err)
	counts, row := map[int32]int{}, make([]int32, b.SeqLength()+1)
	for range v.Len() {
		require.NoError(t, v.Batch(row))
		counts[row[0]]++
	}
	return counts
}

func TestDatasets(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"train.txt": strings.Repeat("a", 1000), "valid.jsonl": lines(strings.Repeat("b", 100)), "other.txt": strings.Repeat("d", 1000)})
	test := index(t, []int32{'c', 'c', 'c', 'c', 'c', 'c', 'c'}, []int32{'c', 'c'})
	train := filepath.Join(root, "train.txt")
	s := data.PlanSettings{SeqLength: 4, Evaluate: true}

	d, reports, err := open(t, data.SourceConfig{TrainDataPath: train, ValidFraction: 0.1}, s)
	require.NoError(t, err)
	assert.Equal(t, []int{180, 20}, []int{d.Train.Len(), d.Valid.Len()})
	assert.Nil(t, d.Test)
	assert.Len(t, reports, 1)
	assert.Equal(t, d.Train.Fingerprint(), d.Fingerprint())
	assert.True(t, strings.HasPrefix(d.Fingerprint(), d.Corpus()+" "))

	d, _, err = open(t, data.SourceConfig{TrainDataPath: train, ValidFraction: 0.1, ValidDataPath: filepath.Join(root, "valid.jsonl"), TestDataPath: test}, s)
	require.NoError(t, err)
	assert.Equal(t, map[int32]int{'a': 200}, windows(t, d.Train), "nothing of it is held out")
	assert.Equal(t, map[int32]int{'b': 20}, windows(t, d.Valid))
	assert.Equal(t, map[int32]int{'c': 1}, windows(t, d.Test))
	assert.Contains(t, d.Fingerprint(), " | ")

	d, _, err = open(t, data.SourceConfig{TrainDataPath: train, Split: "8,1,1"}, s)
	require.NoError(t, err)
	assert.Equal(t, []int{160, 20, 20}, []int{d.Train.Len(), d.Valid.Len(), d.Test.Len()})
	assert.Contains(t, d.Fingerprint(), "test_windows=20")

	d, _, err = open(t, data.SourceConfig{TrainDataPath: train, ValidFraction: 0.1}, data.PlanSettings{SeqLength: 4})
	require.NoError(t, err)
	assert.Nil(t, d.Valid)
	assert.Equal(t, 200, d.Train.Len())

	d, reports, err = open(t, data.SourceConfig{TrainDataPath: "3 " + train + " 1 " + filepath.Join(root, "other.txt"), ValidFraction: 0.1}, s)
	require.NoError(t, err)
	assert.Equal(t, map[int32]int{'a': 20, 'd': 20}, windows(t, d.Valid))
	assert.Len(t, reports, 2)
	assert.Contains(t, d.Fingerprint(), "share=c0000000 ")
}

func TestBadDatasets(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"a": strings.Repeat("a", 100), "short": "abc", "half.idx": "x"})
	a := filepath.Join(root, "a")
	set := index(t, []int32{1, 2, 3, 300, 5, 6})
	s := data.PlanSettings{SeqLength: 4, Evaluate: true}
	for name, tt := range map[string]struct {
		give data.SourceConfig
		want []string
	}{
		"no validation":        {data.SourceConfig{TrainDataPath: a, ValidDataPath: root + "/none"}, []string{"valid_data_path: ", "none"}},
		"short test":           {data.SourceConfig{TrainDataPath: a, TestDataPath: filepath.Join(root, "short")}, []string{"seq_length", "given 3 tokens, want at least 5"}},
		"token":                {data.SourceConfig{TrainDataPath: set}, []string{"train_data_path: ", "set.bin: byte 6: given the token 300, want 0 to 255"}},
		"short dataset":        {data.SourceConfig{TrainDataPath: index(t, []int32{1, 2})}, []string{"given 2 tokens, want at least 5"}},
		"half a dataset":       {data.SourceConfig{TrainDataPath: filepath.Join(root, "half")}, []string{"train_data_path: ", "half.bin", "no such file"}},
		"limit of a dataset":   {data.SourceConfig{TrainDataPath: set, TrainDataMax: 5}, []string{"train_data_max_bytes: given 5", "indexed dataset"}},
		"a blend without path": {data.SourceConfig{TrainDataPath: "1 " + a + " 2"}, []string{"train_data_path: ", "want a weight before each path"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := open(t, tt.give, s)
			require.Error(t, err)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	for split, ok := range map[string]bool{"969,30,1": true, "1": true, "99, 1": true, "0,1": false, "a": false, "1,2,3,4": false, "1,-1": false, "": true, "1,nan": false} {
		err := data.SourceConfig{Split: split}.Validate()
		if ok {
			assert.NoError(t, err, split)
		} else {
			assert.ErrorContains(t, err, "split: given", split)
		}
	}
}
