package checkpoint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that is written in pieces, in any order, is the one that is written at once.
func TestPieces(t *testing.T) {
	values := make([]float32, 1000)
	for i := range values {
		values[i] = float32(i)
	}
	e, err := safetensors.FromSlice("x", values)
	require.NoError(t, err)
	layout, err := safetensors.Arrange([]safetensors.Entry{e}, nil)
	require.NoError(t, err)
	at, data := layout.Begin["x"], e.Data()
	piece := func(lo, hi int64) checkpoint.Piece { return checkpoint.Piece{At: at + lo, Data: data[lo:hi]} }
	for name, tt := range map[string]struct {
		pieces []checkpoint.Piece
		want   string
	}{
		"one":        {[]checkpoint.Piece{piece(0, 4000)}, ""},
		"several":    {[]checkpoint.Piece{piece(1003, 4000), piece(0, 0), piece(0, 1), piece(1, 1003)}, ""},
		"a hole":     {[]checkpoint.Piece{piece(0, 8), piece(12, 4000)}, "up to byte"},
		"an overlap": {[]checkpoint.Piece{piece(0, 8), piece(4, 4000)}, "up to byte"},
		"the end":    {[]checkpoint.Piece{piece(0, 3999)}, "up to byte"},
		"none":       {nil, "up to byte"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := checkpoint.NewStore(t.TempDir(), checkpoint.Settings{Run: "run"})
			require.NoError(t, err)
			saved, err := s.Save(1, func(w *checkpoint.Writer) error {
				if err := w.Reserve("pieces", layout); err != nil {
					return err
				}
				written, err := checkpoint.WritePieces(filepath.Join(w.Dir(), "pieces"), tt.pieces)
				require.NoError(t, err)
				if err := w.Complete("pieces", layout, written); err != nil {
					return err
				}
				return w.Safetensors("whole", []safetensors.Entry{e}, nil)
			})
			if tt.want != "" {
				require.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			_, err = checkpoint.Open(t.Context(), saved.Path) // compares the checksums
			require.NoError(t, err)
			pieces, err := os.ReadFile(filepath.Join(saved.Path, "pieces"))
			require.NoError(t, err)
			whole, err := os.ReadFile(filepath.Join(saved.Path, "whole"))
			require.NoError(t, err)
			assert.Equal(t, whole, pieces)
		})
	}
}
