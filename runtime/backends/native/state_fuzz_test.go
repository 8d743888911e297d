package native

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backend"

	"github.com/primus-fl/primus/internal/primustest"
)

// FuzzState gives texts to the reader of trainer_state.json. A state that it accepts belongs to the
// checkpoint, and is read again as what it is.
//
// Oracle: round trip.
func FuzzState(f *testing.F) {
	const step = 7
	valid := 2.5
	for _, s := range []state{
		{Step: step, Seed: -1, Position: 28, Data: "tokens=1 crc32c=00000000", RunLosses: backend.RunLosses{Loss: 3, FirstLoss: 5.5, ValidLoss: &valid, ValidTokens: 64}},
		{Step: step, Parameters: map[string]any{"lr": 3e-3, "lr_decay_style": "cosine", "add_bias_linear": true}},
		{Step: step + 1},
		{Step: step, Position: math.MaxUint64},
	} {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)/2])
		f.Add(append(text, text...))
	}
	f.Add([]byte(`{"step": 7, "momentum": 1}`))
	f.Add([]byte("null"))
	store, err := checkpoint.NewStore(f.TempDir(), checkpoint.Settings{})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := store.Save(step, func(w *checkpoint.Writer) error {
		return w.File(stateFile, func(out io.Writer) error {
			_, err := io.WriteString(out, "{}")
			return err
		})
	}); err != nil {
		f.Fatal(err)
	}
	c, err := store.Open(step)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(c.Path(), stateFile)
	f.Fuzz(func(t *testing.T, text []byte) {
		defer primustest.Measured(t, len(text))()
		read := func(text []byte) (*state, error) {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			return readState(c)
		}
		s, err := read(text)
		if err != nil {
			if _, unreadable := errors.AsType[*checkpoint.UnreadableError](err); unreadable {
				t.Fatal(err)
			}
			return
		}
		if s.Step != step || s.Position > math.MaxInt64 {
			t.Fatalf("accepted %+v", s)
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Parameters) == 0 {
			s.Parameters = nil
		}
		if len(s.Canaries) == 0 {
			s.Canaries = nil
		}
		if b, err := read(again); err != nil || !reflect.DeepEqual(s, b) {
			t.Fatalf("%q was read as %+v, and that as %+v: %v", text, s, b, err)
		}
	})
}
