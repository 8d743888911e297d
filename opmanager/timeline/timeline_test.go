package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/timeline"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type args struct {
	X *tensor.Tensor `op:"0 x update f32 [n]"`
}

var op = opregistry.NewOp("some", opregistry.Schema[args]{})

func TestTimeline(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	fail := false
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{{Op: op, ID: "reference.go", Kind: opregistry.KindReference,
		Run: opregistry.Func[args](func(*opregistry.Exec, args) error {
			if fail {
				return errors.New("no memory")
			}
			both.Done()
			both.Wait() // so that the two calls overlap
			return nil
		})}}}))
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	x, err := tensor.FromSlice([]float32{1, 2})
	require.NoError(t, err)
	line := &timeline.Timeline{}
	defer m.Tap(line)()

	line.SetStep(1)
	var done sync.WaitGroup
	for _, phase := range []oppolicy.Phase{oppolicy.PhaseForward, oppolicy.PhaseBackward} {
		bound := opmanager.MustBind(m.Layer(3).Phase(phase), op)
		done.Go(func() { assert.NoError(t, bound.Call(args{x})) })
	}
	done.Wait()
	line.SetStep(2)
	fail = true
	require.Error(t, opmanager.MustBind(m, op).Call(args{x}))
	line.SetStep(0)
	assert.Equal(t, 3, line.Calls())

	var out bytes.Buffer
	require.NoError(t, line.WriteJSON(&out, "primus"))
	var trace struct {
		Events []struct {
			Name  string         `json:"name"`
			Phase string         `json:"ph"`
			Start float64        `json:"ts"`
			Took  float64        `json:"dur"`
			Lane  int            `json:"tid"`
			Args  map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &trace))
	names, lanes := map[string]int{}, map[int]bool{}
	for _, e := range trace.Events {
		names[e.Name]++
		if e.Name == "some" {
			lanes[e.Lane] = true
			assert.Equal(t, "x f32 [2]", e.Args["call"])
			assert.InDelta(t, 8, e.Args["bytes"], 0)
			if e.Args["step"] == 1. {
				assert.Equal(t, "reference.go", e.Args["impl"])
				assert.InDelta(t, 3, e.Args["layer"], 0)
			} else {
				assert.Contains(t, e.Args["error"], "no memory")
			}
		}
	}
	assert.Equal(t, map[string]int{"process_name": 1, "thread_name": 3, "some": 3, "step 1": 1, "step 2": 1}, names)
	assert.Len(t, lanes, 2, "calls that overlap have lanes of their own")
}
