package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/mpi"
)

// rankMode is the argument that makes this program a rank: pairs of a number of bytes and a number
// of calls follow.
const rankMode = "-rank"

// batches is how often the calls of a size are timed; their median counts.
const batches = 5

// timing is the time of a call.
type timing struct {
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// beRank times all_reduce in place, through the manager, as a run calls it.
func beRank(args []string, out io.Writer) error {
	d, err := backend.ReadDistributed(backend.ProcessEnviron())
	if err != nil {
		return err
	}
	group := collective.Group{Rank: d.Rank, Ranks: d.WorldSize}
	library, registry := mpi.New(mpi.Options{}), opregistry.NewRegistry()
	if err := registry.Register(library.Source()); err != nil {
		return err
	}
	m := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{Exec: opregistry.NewExec(nil, 0)})
	defer m.Close()
	call, barrier := opmanager.MustBind(m, collective.AllReduce), opmanager.MustBind(m, collective.Barrier)
	for i := 0; i+1 < len(args); i += 2 {
		bytes, sizeErr := strconv.Atoi(args[i])
		calls, callsErr := strconv.Atoi(args[i+1])
		if err := errors.Join(sizeErr, callsErr); err != nil {
			return err
		}
		numbers, err := tensor.FromSlice(make([]float32, bytes/4), bytes/4)
		if err != nil {
			return err
		}
		var times []float64
		for batch := range batches + 1 {
			if err := barrier.Call(collective.BarrierArgs{Group: group}); err != nil {
				return err
			}
			begin := time.Now()
			for range calls {
				if err := call.Call(collective.AllReduceArgs{Input: numbers, Output: numbers, Group: group}); err != nil {
					return err
				}
			}
			if batch > 0 {
				times = append(times, time.Since(begin).Seconds()/float64(calls))
			}
		}
		if group.Rank == 0 {
			text, err := json.Marshal(timing{bytes, stats.Median(times)})
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
				return err
			}
		}
	}
	return library.Close()
}
