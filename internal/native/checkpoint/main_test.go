package checkpoint_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/safetensors"
)

// childEnv makes a child process of the test binary play one role instead of running the tests.
const childEnv = "PRIMUS_CHECKPOINT_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childEnv) {
	case "":
		primustest.EndChildren()
		os.Exit(m.Run())
	case "save_loop":
		fmt.Fprintln(os.Stderr, saveLoop(os.Args[1]))
		os.Exit(1)
	case "full_disk":
		exit(fullDisk(os.Args[1]))
	case "read_only":
		exit(readOnly(os.Args[1]))
	default:
		os.Exit(2)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const weights = 64 << 10

// state is the content of the checkpoint of a step in these tests.
func state(step int64) []byte {
	b := make([]byte, weights)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(step)*0x9e3779b97f4a7c15+uint64(i))
	}
	return b
}

type trainerState struct {
	Step     int64 `json:"step"`
	Position int64 `json:"position"`
}

func saveState(step int64) func(*checkpoint.Writer) error {
	return func(w *checkpoint.Writer) error {
		for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
			e, err := safetensors.FromSlice("weights", state(step))
			if err != nil {
				return err
			}
			if err := w.Safetensors(name, []safetensors.Entry{e}, map[string]string{"format": "pt"}); err != nil {
				return err
			}
		}
		return w.JSON("trainer_state.json", trainerState{Step: step, Position: 32 * step})
	}
}

// checkState compares everything in c with what saveState wrote.
func checkState(c *checkpoint.Checkpoint) error {
	var got trainerState
	if err := c.JSON("trainer_state.json", &got); err != nil {
		return err
	}
	if want := (trainerState{Step: c.Step(), Position: 32 * c.Step()}); got != want {
		return fmt.Errorf("trainer state %+v, want %+v", got, want)
	}
	want := state(c.Step())
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		f, err := c.Safetensors(context.Background(), name)
		if err != nil {
			return err
		}
		data, err := f.Bytes("weights")
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if string(data) != string(want) {
			return fmt.Errorf("%s of step %d has other content than was saved", name, c.Step())
		}
	}
	return nil
}
