package shards_test

import (
	"os"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			file, err := shards.Whole(w, "model.safetensors", []model.Named{{Name: "odd", Tensor: odd}, {Name: "weight", Tensor: weight}}, nil)
			require.NoError(t, err)
			copies := new(shards.Copies).Take([]shards.File{file}, opregistry.Serial{})
			goOn := make(chan struct{})
			s := shards.Begin(w, store, 7, copies, func() error { <-goOn; return tt.check }, func(*checkpoint.Writer) error { return nil })
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
			f, err := c.Safetensors(t.Context(), "model.safetensors")
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
