package command_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTensorBoardFiles(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	require.Zero(t, l.train("train_iters=1").code)
	assert.NoDirExists(t, l.path("tensorboard"), "not asked for")

	for session, steps := range []string{"4", "6"} {
		got := l.train("train_iters="+steps, "disable_tensorboard=false", "eval_interval=2", "eval_iters=1")
		require.Zero(t, got.code, got.stderr)
		files, err := os.ReadDir(l.path("tensorboard"))
		require.NoError(t, err)
		require.Len(t, files, session+1, "a file a session")
	}
	files, err := os.ReadDir(l.path("tensorboard"))
	require.NoError(t, err)
	for i, want := range []struct{ train, valid int }{{3, 2}, {2, 1}} { // steps 2 to 4, then 5 and 6
		text, err := os.ReadFile(l.path("tensorboard", files[i].Name()))
		require.NoError(t, err)
		assert.Equal(t, want.train, bytes.Count(text, []byte("train/loss")))
		assert.Equal(t, want.valid, bytes.Count(text, []byte("valid/loss")))
	}
}
