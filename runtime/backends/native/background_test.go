package native_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Checkpoints have the same bytes whether or not training waits for them, and a run goes on from
// one written in the background as if it had not stopped.
func TestSavesInTheBackgroundAreTheSame(t *testing.T) {
	for name, overrides := range map[string][]string{
		"plain":                 nil,
		"an average of weights": {"ema_decay=0.9"},
		"adapters":              {"lora_rank=2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			with := func(more ...string) []string {
				return append(append([]string{"save_interval=2", "keep_last=9"}, overrides...), more...)
			}
			require.NoError(t, l.train(t.Context(), "waits", with("async_save=false")...))
			assert.NotContains(t, l.log.String(), " took=")
			require.NoError(t, l.train(t.Context(), "goes-on", with()...))
			assert.Equal(t, 5, strings.Count(l.log.String(), " took="), "all but the last")
			assert.Equal(t, contents(t, l.path("waits", "checkpoints")), contents(t, l.path("goes-on", "checkpoints")))
			assert.Len(t, l.metrics("goes-on"), 12)

			require.NoError(t, os.RemoveAll(l.path("goes-on", "checkpoints", "step-00000012")))
			require.NoError(t, l.train(t.Context(), "goes-on", with()...))
			assert.Contains(t, l.log.String(), "resuming from checkpoint")
			assert.Equal(t, l.metrics("waits"), l.metrics("goes-on"))
		})
	}
}

// contents returns the files of checkpoints, but for those that name the run and its process.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "checkpoint.json" || d.Name() == ".lock" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(text)
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// onSave calls do after each checkpoint.
type onSave struct {
	backend.Observers
	do func(step int)
}

func (o onSave) CheckpointSaved(step int) { o.do(step) }

// A save that fails in the background ends the run as one that training waits for, with the same
// words.
func TestASaveFailsInTheBackground(t *testing.T) {
	failures := map[string]string{}
	for _, mode := range []string{"async_save=false", "async_save=true"} {
		l := newLab(t)
		dir := l.path("run", "checkpoints")
		l.observer = onSave{do: func(int) {
			require.NoError(t, os.Rename(dir, dir+"-away"))
			require.NoError(t, os.WriteFile(dir, nil, 0o644))
		}}
		err := l.train(t.Context(), "run", mode)
		require.Error(t, err)
		failures[mode] = regexp.MustCompile(`\S*`+regexp.QuoteMeta(l.dir)).ReplaceAllString(err.Error(), "")
		assert.FileExists(t, filepath.Join(dir+"-away", "step-00000004", "checkpoint.json"))
		assert.NotContains(t, l.log.String(), `"saved checkpoint" step=8`)
	}
	assert.Equal(t, failures["async_save=false"], failures["async_save=true"])
}

// A checkpoint has the weights of its step, whatever happens to them while it is written. Before it
// is judged it does not exist.
func TestSaveWhileWeightsChange(t *testing.T) {
	w := world.Single()
	for name, tt := range map[string]struct {
		check, verdict error
		giveUp         bool
		want           error
	}{
		"complete":                 {},
		"ended":                    {giveUp: true},
		"what is written is wrong": {check: assert.AnError, want: assert.AnError},
		"judged to be wrong":       {verdict: assert.AnError, want: assert.AnError},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := checkpoint.NewStore(t.TempDir(), checkpoint.Settings{Run: "run"})
			require.NoError(t, err)
			weight, err := tensor.FromSlice([]float32{1, 2, 3})
			require.NoError(t, err)
			odd, err := tensor.FromSlice([]uint8{4, 5, 6})
			require.NoError(t, err)
			file, err := native.Whole(w, "model.safetensors", []model.Named{{Name: "odd", Tensor: odd}, {Name: "weight", Tensor: weight}}, nil)
			require.NoError(t, err)
			_, copies := native.CopyFiles(make([]byte, 64), []native.File{file})
			goOn := make(chan struct{})
			s := native.BeginSave(w, store, 7, copies, func() error { <-goOn; return tt.check }, func(*checkpoint.Writer) error { return nil })
			assert.False(t, s.IsReady())
			tensor.Data[float32](weight)[1], tensor.Data[uint8](odd)[1] = 0, 0
			close(goOn)
			switch {
			case tt.giveUp:
				err = s.GiveUp()
			default:
				steps, listErr := store.Steps()
				require.NoError(t, listErr)
				assert.Empty(t, steps, "it is not judged")
				s.Judge(tt.verdict)
				err = s.Wait()
			}
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
				left, err := os.ReadDir(store.Dir())
				require.NoError(t, err)
				require.Len(t, left, 1, "nothing but the lock")
				return
			}
			require.NoError(t, err)
			c, err := store.Open(7)
			require.NoError(t, err)
			f, err := c.Safetensors("model.safetensors")
			require.NoError(t, err)
			defer f.Close()
			got, err := f.Bytes("weight")
			require.NoError(t, err)
			assert.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40}, got, "1, 2 and 3")
			got, err = f.Bytes("odd")
			require.NoError(t, err)
			assert.Equal(t, []byte{4, 5, 6}, got)
		})
	}
}
