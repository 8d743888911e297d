package metrics_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps returns a registry with a gauge of ours, and one of the Go runtime.
func steps(t *testing.T) (*prometheus.Registry, prometheus.Gauge) {
	t.Helper()
	reg := prometheus.NewRegistry()
	step := prometheus.NewGauge(prometheus.GaugeOpts{Name: "primus_train_step", Help: "Last finished step."})
	reg.MustRegister(step, prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_goroutines", Help: "Not ours."}))
	return reg, step
}

func TestTextfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, step := steps(t)
		file := filepath.Join(t.TempDir(), "run.prom")
		read := func() string {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			return string(text)
		}
		const head = "# HELP primus_train_step Last finished step.\n# TYPE primus_train_step gauge\nprimus_train_step "
		out, err := metrics.NewTextfile(file, reg, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		assert.Equal(t, head+"0\n", read())

		step.Set(3)
		time.Sleep(metrics.TextfileInterval)
		synctest.Wait()
		assert.Equal(t, head+"3\n", read())

		step.Set(4)
		require.NoError(t, out.Close())
		assert.Equal(t, head+"4\n", read())
		require.NoError(t, out.Close())
		entries, err := os.ReadDir(filepath.Dir(file))
		require.NoError(t, err)
		assert.Len(t, entries, 1, "no temporary file is left")
	})
}

func TestTextfileThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, _ := steps(t)
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		_, err := metrics.NewTextfile("run.txt", reg, logger)
		require.ErrorContains(t, err, `"run.txt": want a name that ends in .prom`)
		dir := filepath.Join(t.TempDir(), "later")
		file := filepath.Join(dir, "run.prom")
		_, err = metrics.NewTextfile(file, reg, logger)
		require.ErrorIs(t, err, os.ErrNotExist)

		require.NoError(t, os.Mkdir(dir, 0o755))
		out, err := metrics.NewTextfile(file, reg, logger)
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(dir))
		time.Sleep(metrics.TextfileInterval)
		synctest.Wait()
		assert.Contains(t, log.String(), "its directory must exist")
		require.NoError(t, os.Mkdir(dir, 0o755))
		time.Sleep(metrics.TextfileInterval)
		synctest.Wait()
		assert.FileExists(t, file, "the next attempt succeeds")
		require.NoError(t, os.RemoveAll(dir))
		require.ErrorIs(t, out.Close(), os.ErrNotExist)
		require.ErrorIs(t, out.Close(), os.ErrNotExist)
	})
}
