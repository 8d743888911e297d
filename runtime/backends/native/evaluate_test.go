package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// The last evaluation takes more windows than those before it, and says how many tokens that are.
func TestLastEvaluation(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	const seq = 32
	l := newLab(t)
	end := &ended{}
	l.observer = end
	train := func(name string, overrides ...string) []record {
		require.NoError(t, l.train(t.Context(), name, append(overrides, "train_iters=8")...))
		return l.metrics(name)
	}
	few := train("few")
	most := train("most", "final_eval_windows=1000000000")
	all := most[7].ValidTokens
	assert.Contains(t, l.log.String(), fmt.Sprintf("the last evaluation takes %d of the", all/seq))
	assert.Equal(t, all, end.result.ValidTokens)
	assert.Equal(t, 4*seq, few[7].ValidTokens)
	assert.Greater(t, all, 100*seq)
	assert.Equal(t, few[:7], most[:7], "the steps and evaluations before it are the same")
	assert.NotEqual(t, few[7].ValidLoss, most[7].ValidLoss)

	each := train("each", fmt.Sprintf("eval_iters=%d", all/seq/2))
	assert.Equal(t, most[7].ValidLoss, each[7].ValidLoss)
	capped := train("capped", "eval_iters=1000000000")
	assert.Equal(t, most[7], capped[7], "no window is evaluated twice")

	tenth := train("tenth", "final_eval_windows=11", "valid_fraction=0.5")
	assert.Equal(t, 10*seq, tenth[7].ValidTokens, "whole micro batches")
	single := train("single", "micro_batch_size=4", "valid_fraction=1e-9", "seq_length=512", "global_batch_size=4")
	assert.Equal(t, 512, single[7].ValidTokens, "a micro batch that has more rows than there are windows")
	assert.Positive(t, *single[7].ValidLoss)
}

// What patches add to the loss is told apart from the cross entropy.
func TestCrossEntropyBesideThePatchedLoss(t *testing.T) {
	l := newLab(t)
	end := &ended{}
	l.observer = end
	require.NoError(t, l.train(t.Context(), "plain", "train_iters=2"))
	plain := l.metrics("plain")
	assert.Nil(t, plain[0].CrossEntropy)
	assert.Nil(t, end.result.CrossEntropy)
	require.NoError(t, l.train(t.Context(), "z", "train_iters=2", "z_loss_coeff=0.01", "disable_tensorboard=false"))
	events, err := filepath.Glob(l.path("z", "tensorboard", "*"))
	require.NoError(t, err)
	require.Len(t, events, 1)
	text, err := os.ReadFile(events[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), "train/cross_entropy")
	for i, r := range l.metrics("z") {
		require.NotNil(t, r.CrossEntropy)
		assert.Greater(t, r.Loss, *r.CrossEntropy+0.1)
		if i == 0 {
			assert.InDelta(t, plain[0].Loss, *r.CrossEntropy, 1e-12)
		}
		if i == 1 {
			assert.Equal(t, r.CrossEntropy, end.result.CrossEntropy)
		}
	}
}

// A vocabulary that bytes do not fill is told at the start.
func TestUnusedVocabularyIsTold(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "bytes", "train_iters=1"))
	assert.NotContains(t, l.log.String(), "never occur")
	require.NoError(t, l.train(t.Context(), "more", "train_iters=1", "vocab_size=300"))
	assert.Contains(t, l.log.String(), fmt.Sprintf("%d of the parameters are of tokens that never occur", 2*44*32))
}
