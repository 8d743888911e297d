package checkpoint_test

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// marked saves a checkpoint with a mark.
func marked(t *testing.T, s *checkpoint.Store, step int64, m checkpoint.Mark) checkpoint.Saved {
	t.Helper()
	saved, err := s.Save(step, func(w *checkpoint.Writer) error {
		w.Mark(m)
		return w.JSON("state.json", step)
	})
	require.NoError(t, err)
	require.Empty(t, saved.Warnings)
	return saved
}

// TestRotation saves steps with random judgements and losses and compares what stays with the
// rule: of all that were saved, a save leaves the newest ones, those of some steps, the best ones,
// and the last good one.
func TestRotation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		set := checkpoint.Settings{Keep: 1 + random.IntN(3), KeepEvery: int64(random.IntN(3) * 20), KeepBest: random.IntN(3), Run: "r"}
		s, err := checkpoint.NewStore(t.TempDir(), set)
		require.NoError(t, err)
		var there []checkpoint.Entry // newest first
		for step := int64(10); step <= 200; step += 10 {
			m := checkpoint.Mark{Judgement: []checkpoint.Judgement{checkpoint.Good, checkpoint.Spike, checkpoint.Diverged, ""}[min(random.IntN(20), 3)]}
			if step > 50 && m.Judgement == "" && random.IntN(2) == 0 {
				m.Judgement = checkpoint.Diverged // for long
			}
			if random.IntN(2) == 0 {
				loss := float64(random.IntN(5))
				m.ValidLoss = &loss
			}
			marked(t, s, step, m)
			there = slices.Insert(there, 0, checkpoint.Entry{Step: step, Mark: m})
			var stay []checkpoint.Entry
			good := slices.IndexFunc(there, func(e checkpoint.Entry) bool { return e.Judgement == checkpoint.Good || e.Judgement == "" })
			best := slices.DeleteFunc(slices.Clone(there), func(e checkpoint.Entry) bool { return e.ValidLoss == nil })
			slices.SortStableFunc(best, func(a, b checkpoint.Entry) int { return cmp.Compare(*a.ValidLoss, *b.ValidLoss) })
			best = best[:min(len(best), set.KeepBest)]
			for i, e := range there {
				if i < set.Keep || set.KeepEvery > 0 && e.Step%set.KeepEvery == 0 || i == good ||
					slices.ContainsFunc(best, func(b checkpoint.Entry) bool { return b.Step == e.Step }) {
					stay = append(stay, e)
				}
			}
			there = stay
			listed, err := checkpoint.List(s.Dir())
			require.NoError(t, err)
			require.Len(t, listed, len(there))
			for i, e := range listed {
				assert.Equal(t, there[i].Step, e.Step)
				assert.Equal(t, there[i].Mark, e.Mark)
				assert.Equal(t, "r", e.Run)
				assert.Positive(t, e.Bytes)
			}
			c, _, err := s.LastGood()
			if good < 0 {
				require.ErrorIs(t, err, checkpoint.ErrNone)
				continue
			}
			require.NoError(t, err)
			at := slices.IndexFunc(there, func(e checkpoint.Entry) bool { return e.Judgement == checkpoint.Good || e.Judgement == "" })
			assert.Equal(t, there[at].Step, c.Step())
			assert.Equal(t, there[at].Mark, c.Mark())
		}
	}
}

func TestLastGoodIsOfTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, err := checkpoint.NewStore(dir, checkpoint.Settings{Run: "other"})
	require.NoError(t, err)
	marked(t, other, 5, checkpoint.Mark{Judgement: checkpoint.Good})
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{Run: "own"})
	require.NoError(t, err)
	marked(t, s, 6, checkpoint.Mark{Judgement: checkpoint.Diverged})
	_, _, err = s.LastGood()
	require.ErrorIs(t, err, checkpoint.ErrNone)
	marked(t, s, 4, checkpoint.Mark{Judgement: checkpoint.Good})
	c, _, err := s.LastGood()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "step-00000004"), c.Path())
}
