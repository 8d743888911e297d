package policyfile_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// watched is a file that a Watcher follows in a bubble, where time is free.
type watched struct {
	t       *testing.T
	file    string
	log     logBuffer
	manager *opmanager.Manager
	applied []oppolicy.Policy // the policies that came into force
}

// logBuffer is a bytes.Buffer for two goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// take returns what was written since the last call.
func (b *logBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.b.Reset()
	return b.b.String()
}

func warnings(log string) int { return strings.Count(log, "level=WARN") }

const first = "prefer: vendor\n"

// watch runs f beside a Watcher of a file that begins with first.
func watch(t *testing.T, f func(*watched)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &watched{t: t, file: filepath.Join(dir, "policy.yaml")}
		w.write(first)
		l, err := policyfile.Read(t.Context(), w.file)
		require.NoError(t, err)
		w.manager = opmanager.New(registry(t), oppolicy.Default(), opmanager.Settings{Layers: opmanager.PolicyLayers{
			opmanager.LayerFile:  l.PolicyLayer,
			opmanager.LayerFlags: {Policy: oppolicy.Policy{ProtectInPlace: true}},
		}})
		defer w.manager.Close()
		watcher := policyfile.NewWatcher(l, policyfile.WatchSettings{
			Manager: w.manager, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
			Changed: func(l *policyfile.Layer) {
				now := w.manager.PolicyStack().State()
				assert.Equal(t, l.PolicyLayer, now.Layers[opmanager.LayerFile])
				w.applied = append(w.applied, now.Policy)
			},
		})
		watcher.Start()
		watcher.Start()
		time.Sleep(policyfile.Interval / 2) // what follows happens between two looks
		f(w)
		watcher.Close()
		watcher.Close()
	})
}

// registry returns two impls of an op.
func registry(t *testing.T) *opregistry.Registry {
	impl := func(id string, kind opregistry.Kind, vendor string) opregistry.Impl {
		return opregistry.Impl{
			Op: norm.ResidualAdd, ID: id, Kind: kind, Vendor: vendor,
			Run: func(*opregistry.Exec, norm.ResidualAddArgs) error { return nil },
		}
	}
	r := opregistry.NewRegistry()
	require.NoError(t, r.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{
		impl("default.flagos", opregistry.KindFlagos, ""), impl("vendor.acme", opregistry.KindVendor, "acme"),
	}}))
	return r
}

func (w *watched) write(text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.file, []byte(text), 0o600))
}

// pass lets the Watcher look a number of times.
func (w *watched) pass(polls int) {
	time.Sleep(time.Duration(polls) * policyfile.Interval)
	synctest.Wait()
}

func TestWatchAppliesAChange(t *testing.T) {
	watch(t, func(w *watched) {
		w.pass(3)
		assert.Empty(t, w.applied, "what is in force already is not applied")
		assert.Empty(t, w.log.take())

		w.write("strict: true\n")
		w.pass(3)
		require.Len(t, w.applied, 1)
		assert.True(t, w.applied[0].Strict)
		assert.True(t, w.applied[0].ProtectInPlace, "which another layer gives")
		assert.Contains(t, w.log.take(), "generation=3")
	})
}

// Size and time say nothing where a file is written twice in one tick of the clock.
func TestWatchSeesAChangeOfTheSameSizeAndTime(t *testing.T) {
	watch(t, func(w *watched) {
		info, err := os.Stat(w.file)
		require.NoError(t, err)
		w.write("prefer: flagos\n")
		require.NoError(t, os.Chtimes(w.file, info.ModTime(), info.ModTime()))
		w.pass(3)
		assert.Len(t, w.applied, 1)
	})
}

func TestWatchFollowsARename(t *testing.T) {
	watch(t, func(w *watched) {
		next := w.file + ".new"
		require.NoError(t, os.WriteFile(next, []byte("strict: 1\n"), 0o600))
		require.NoError(t, os.Rename(next, w.file))
		w.pass(3)
		require.Len(t, w.applied, 1)
		assert.True(t, w.applied[0].Strict)
		assert.Zero(t, warnings(w.log.take()))
	})
}

// A file that is being written is left alone until it stands still.
func TestWatchWaitsForAWriter(t *testing.T) {
	watch(t, func(w *watched) {
		for _, text := range []string{"", "deny_ven", "deny_vendors: [", "deny_vendors: [acme"} {
			w.write(text)
			w.pass(1)
		}
		assert.Empty(t, w.applied)
		assert.Empty(t, w.log.take())
		w.write("deny_vendors: [acme]\n")
		w.pass(3)
		require.Len(t, w.applied, 1)
		assert.Equal(t, []string{"acme"}, w.applied[0].Deny)
	})
}

func TestWatchRejectsATruncatedFile(t *testing.T) {
	watch(t, func(w *watched) {
		for _, text := range []string{"", "prefer: ven", "per_op:\n  a: [vend"} {
			w.write(text)
			w.pass(5)
			assert.Empty(t, w.applied)
			log := w.log.take()
			assert.Equal(t, 1, warnings(log), "once for each content: %s", log)
			assert.Contains(t, log, w.file+":")
		}
		w.write("prefer: ven")
		w.pass(5)
		assert.Empty(t, w.log.take(), "this content was reported before")

		w.write(first)
		w.pass(3)
		assert.Empty(t, w.applied, "the policy in force came from this content")
		assert.Contains(t, w.log.take(), "has the content of the current policy again")
	})
}

func TestWatchKeepsThePolicyOfADeletedFile(t *testing.T) {
	watch(t, func(w *watched) {
		for range 2 {
			require.NoError(t, os.Remove(w.file))
			w.pass(5)
			assert.Empty(t, w.applied)
			log := w.log.take()
			assert.Equal(t, 1, warnings(log), log)
			assert.Contains(t, log, "no such file")
			w.write(first)
			w.pass(3)
			assert.Empty(t, w.applied)
			assert.Contains(t, w.log.take(), "has the content of the current policy again")
		}
		w.write("strict: 1\n")
		w.pass(3)
		assert.Len(t, w.applied, 1)
	})
}

// Names that nothing registers are in the log, and the policy is in force.
func TestWatchWarnsOfUnknownNames(t *testing.T) {
	watch(t, func(w *watched) {
		w.write("deny_vendors: acne\n")
		w.pass(3)
		require.Len(t, w.applied, 1)
		assert.Regexp(t, `level=WARN msg=.*names vendor \\"acne\\"(.|\n)*policy file is in force`, w.log.take())
	})
}

// A policy that the layers above the file make impossible changes nothing either.
func TestWatchReportsARefusal(t *testing.T) {
	watch(t, func(w *watched) {
		bound := opmanager.MustBind(w.manager, norm.ResidualAdd)
		before := w.manager.PolicyStack().State()
		w.write("per_op: {residual_add: vendor:nvidia}\n")
		w.pass(5)
		assert.Empty(t, w.applied)
		log := w.log.take()
		assert.Equal(t, 1, warnings(log), log)
		assert.Contains(t, log, `residual_add\" is in use`)
		assert.Equal(t, before, w.manager.PolicyStack().State())
		runtime.KeepAlive(bound)
	})
}

func TestCloseWithoutStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(file, []byte("{}"), 0o600))
	o, err := policyfile.Read(t.Context(), file)
	require.NoError(t, err)
	w := policyfile.NewWatcher(o, policyfile.WatchSettings{Log: slog.New(slog.DiscardHandler)})
	w.Close()
	w.Start()
}
