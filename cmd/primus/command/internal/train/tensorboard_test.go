package train_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTensorBoardFiles(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=1").Code)
	assert.NoDirExists(t, l.Path("tensorboard"), "not asked for")

	for session, steps := range []string{"4", "6"} {
		got := l.Train("train_iters="+steps, "disable_tensorboard=false", "eval_interval=2", "eval_iters=1")
		require.Zero(t, got.Code, got.Stderr)
		files, err := os.ReadDir(l.Path("tensorboard"))
		require.NoError(t, err)
		require.Len(t, files, session+1, "a file a session")
	}
	files, err := os.ReadDir(l.Path("tensorboard"))
	require.NoError(t, err)
	for i, want := range []struct{ train, valid int }{{3, 2}, {2, 1}} { // steps 2 to 4, then 5 and 6
		text, err := os.ReadFile(l.Path("tensorboard", files[i].Name()))
		require.NoError(t, err)
		assert.Equal(t, want.train, bytes.Count(text, []byte("train/loss")))
		assert.Equal(t, want.valid, bytes.Count(text, []byte("valid/loss")))
	}
}
