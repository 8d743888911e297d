package checkpoint_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/checkpoint"
)

// saveLoop is the child: it goes on where the directory stands and prints each
// step after its save has returned. It ends only by an error or a signal.
func saveLoop(dir string) error {
	s, err := checkpoint.NewStore(dir, checkpoint.Settings{})
	if err != nil {
		return err
	}
	step := int64(0)
	c, warnings, err := s.Latest()
	switch {
	case err == nil && len(warnings) == 0:
		step = c.Step()
	case err == nil:
		return fmt.Errorf("a kill damaged a checkpoint: %v", warnings)
	case !errors.Is(err, checkpoint.ErrNone):
		return err
	}
	fmt.Println("ready")
	for {
		step++
		if _, err := s.Save(step, saveState(step)); err != nil {
			return err
		}
		fmt.Println(step)
	}
}

// TestKillWhileSaving kills a saving process at 20 random moments. After each of
// them the newest checkpoint must be intact and be no older than the last save
// that the process knew to be finished.
func TestKillWhileSaving(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "checkpoints")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	interrupted, last := 0, int64(0)
	for range 20 {
		finished := killOneSaver(t, dir, time.Duration(random.Int64N(int64(25*time.Millisecond))))
		last = max(last, finished)

		s := newStore(t, dir)
		c, warnings, err := s.Latest()
		if last == 0 && errors.Is(err, checkpoint.ErrNone) {
			continue
		}
		require.NoError(t, err)
		require.Empty(t, warnings)
		require.NoError(t, checkState(c))
		require.GreaterOrEqual(t, c.Step(), last)
		for _, name := range names(t, dir) {
			if strings.Contains(name, ".tmp-") {
				interrupted++
				break
			}
		}
	}
	t.Logf("reached step %d; %d of 20 kills left an unfinished directory", last, interrupted)

	s := newStore(t, dir)
	save(t, s, last+10)
	for _, name := range names(t, dir) {
		assert.NotContains(t, name, ".tmp-")
	}
}

// killOneSaver returns the last step that the child reported as saved.
func killOneSaver(t *testing.T, dir string, after time.Duration) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"=save_loop")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	ready, err := lines.ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		require.NoError(t, err, stderr.String())
	}
	require.Equal(t, "ready\n", ready)

	killed := make(chan error, 1)
	timer := time.AfterFunc(after, func() { killed <- cmd.Process.Kill() })
	defer timer.Stop()
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Empty(t, stderr.String())
	require.NoError(t, <-killed)

	last := int64(0)
	for line := range strings.Lines(string(rest)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		last, err = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		require.NoError(t, err)
	}
	return last
}
