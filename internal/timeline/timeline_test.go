package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/timeline"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
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
	require.NoError(t, line.WriteJSON(&out, "primus", 0))
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
	assert.Equal(t, map[string]int{"process_name": 1, "process_sort_index": 1, "thread_name": 3, "some": 3, "step 1": 1, "step 2": 1}, names)
	assert.Len(t, lanes, 2, "calls that overlap have lanes of their own")
}

type sumArgs struct {
	X                *tensor.Tensor `op:"0 x update f32 [n]"`
	collective.Group `op:"1"`
}

var sum = opregistry.NewOp("sum", opregistry.Schema[sumArgs]{})

// timelineOf returns the timeline of a rank that makes one collective.
func timelineOf(t *testing.T, rank int) *bytes.Buffer {
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(opregistry.Source{Name: "test", Impls: []opregistry.Impl{{Op: sum, ID: "reference.go", Kind: opregistry.KindReference,
		Run: opregistry.Func[sumArgs](func(*opregistry.Exec, sumArgs) error { return nil })}}}))
	m := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer m.Close()
	x, err := tensor.FromSlice([]float32{1, 2})
	require.NoError(t, err)
	line := &timeline.Timeline{}
	defer m.Tap(line)()
	line.SetStep(1)
	require.NoError(t, opmanager.MustBind(m, sum).Call(sumArgs{x, collective.Group{Rank: rank, Ranks: 2, First: 1, Stride: 3}}))
	line.SetStep(0)
	var out bytes.Buffer
	require.NoError(t, line.WriteJSON(&out, "primus", rank))
	return &out
}

func TestJoin(t *testing.T) {
	first, second := timelineOf(t, 0), timelineOf(t, 1)
	var apart struct {
		Other struct{ Began time.Time } `json:"otherData"`
	}
	var began []time.Time
	for _, part := range []*bytes.Buffer{first, second} {
		require.NoError(t, json.Unmarshal(part.Bytes(), &apart))
		began = append(began, apart.Other.Began)
	}
	var out bytes.Buffer
	require.NoError(t, timeline.Join(&out, timeline.Part{Name: "second", Reader: bytes.NewReader(second.Bytes())}, timeline.Part{Name: "first", Reader: bytes.NewReader(first.Bytes())}))
	var trace struct {
		Events []struct {
			Name     string         `json:"name"`
			Category string         `json:"cat"`
			Start    float64        `json:"ts"`
			Process  int            `json:"pid"`
			Args     map[string]any `json:"args"`
		} `json:"traceEvents"`
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &trace))
	starts := map[int]float64{}
	for _, e := range trace.Events {
		if e.Name == "step 1" {
			starts[e.Process] = e.Start
		}
		if e.Category == "collective" {
			assert.Equal(t, "sum", e.Name)
			assert.Equal(t, "ranks 1 to 4 in steps of 3", e.Args["group"])
			assert.InDelta(t, e.Process-1, e.Args["group_rank"], 0)
		}
	}
	assert.Equal(t, map[int]float64{1: 0, 2: float64(began[1].Sub(began[0]).Nanoseconds()) / 1e3}, starts, "both on the clock of the first")

	for want, parts := range map[string][]string{
		"given no file":                            nil,
		"timeline 0: unexpected EOF":               {`{"traceEvents":`},
		"timeline 0: given a file witho":           {`{"traceEvents":[{"name":"a"}]}`},
		"timeline 1: it is of rank 0, and so is 0": {first.String(), first.String()},
	} {
		var files []timeline.Part
		for i, text := range parts {
			files = append(files, timeline.Part{Name: strconv.Itoa(i), Reader: strings.NewReader(text)})
		}
		require.ErrorContains(t, timeline.Join(io.Discard, files...), want)
	}
}

// Oracle: round trip.
func FuzzJoin(f *testing.F) {
	f.Add(`{"traceEvents":[{"name":"a","ph":"X","ts":1,"pid":1}],"otherData":{"began":"2026-01-02T03:04:05Z"}}`, `{}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		defer primustest.Measured(t, len(a)+len(b))()
		var out bytes.Buffer
		if err := timeline.Join(&out, timeline.Part{Name: "a", Reader: strings.NewReader(a)}, timeline.Part{Name: "b", Reader: strings.NewReader(b)}); err == nil {
			require.NoError(t, timeline.Join(io.Discard, timeline.Part{Name: "joined", Reader: &out}))
		}
	})
}
