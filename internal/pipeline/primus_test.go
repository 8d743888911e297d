package pipeline

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// TestPrimus compares with the simulator of a checkout of Primus on the same times: no table is
// slower or needs more memory. Where the passes of v-min are of different length its table may be
// 0.6 % slower, and what the search finds within the same memory 0.2 %.
func TestPrimus(t *testing.T) {
	t.Parallel()
	checkout := os.Getenv("PRIMUS_CHECKOUT")
	if checkout == "" {
		t.Skip("PRIMUS_CHECKOUT does not name a checkout of Primus")
	}
	names := [][2]string{{"1f1b", "1f1b"}, {"interleaved", "1f1b-interleaved"}, {"zb1p", "zero-bubble"}, {"zbv", "zbv-formatted"}, {"v-half", "v-half"}, {"v-min", "v-min"}}
	type compared struct {
		cell
		cost Cost
	}
	var all []compared
	var theirs [][]any
	for _, p := range []int{2, 3, 4, 6, 8, 12, 16} {
		for _, m := range []int{4, 8, 16, 32, 48, 64} {
			for _, name := range names {
				for _, c := range []Cost{{12, 12, 12}, {12, 24, 12}, {12, 14, 10}} {
					chunks := Chunks(name[0], 2)
					all = append(all, compared{cell{name[0], p, m, chunks}, c})
					theirs = append(theirs, []any{name[1], p, m, chunks, c.Forward, c.Backward, c.Weights})
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(11, 12))
	r.Shuffle(len(all), func(i, j int) {
		all[i], all[j] = all[j], all[i]
		theirs[i], theirs[j] = theirs[j], theirs[i]
	})
	n := primustest.Cases(250, len(all))
	input, err := json.Marshal(theirs[:n])
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/simulate.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+checkout)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	var results []*[2]float64
	require.NoError(t, json.Unmarshal(output, &results))
	require.Len(t, results, n)
	stuck := 0
	for i, c := range all[:n] {
		if results[i] == nil {
			stuck++
			continue
		}
		step, peak := results[i][0], results[i][1]
		times := equal(c.cost)
		got := simulated(t, generate(t, c.cell, times), times)
		assert.LessOrEqual(t, got.Peak(), peak, "%v", c)
		if got.StepTime <= step {
			continue
		}
		assert.Equal(t, "v-min", c.name, "%v", c)
		assert.NotEqual(t, c.cost.Forward, c.cost.Backward, "%v", c)
		assert.LessOrEqual(t, got.StepTime, step*1.006, "%v", c)
		table, err := Search(c.ranks, c.microBatches, c.chunks, times, peak)
		require.NoError(t, err)
		assert.LessOrEqual(t, simulated(t, table, times).StepTime, step*1.002, "%v", c)
	}
	assert.Less(t, stuck, n/4)
	t.Logf("%d cells, of which %d do not end or lack passes in the other simulator", n, stuck)
}
