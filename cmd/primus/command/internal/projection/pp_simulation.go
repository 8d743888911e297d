package projection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/spf13/cobra"
)

// simulationKeys are the keys of a pp_simulation.yaml of Primus.
var simulationKeys = []string{"fwd_time", "bwd_time", "wgrad_time", "schedulers", "print_simulation_result", "output_dir"}

// schedulerKeys are the keys of one of its schedulers. The costs that guide the search of Primus
// stand for the times of the file here.
var schedulerKeys = []string{
	"name", "class", "pp_size", "vpp_size", "micro_batches", "memory_config", "max_mem",
	"cost_f", "cost_b", "cost_w", "cost_comm", "offload", "combined_forward_backward",
}

// schedulerClasses are the schedules of its classes.
var schedulerClasses = map[string]string{
	"Schedule1F1B": "1f1b", "ScheduleInterleaved1F1B": "interleaved", "ScheduleZeroBubble": "zb1p", "ScheduleZBVFormatted": "zbv",
	"ScheduleZBVGreedy": "v-half", "ScheduleZeroBubbleHeuristic": pipeline.Auto,
}

// simulationReader reads a pp_simulation.yaml and collects what is wrong with it.
type simulationReader struct {
	send float64
	errs []error
}

func (r *simulationReader) fail(v document.Value, format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf("%v: %w", v.Origin(), fmt.Errorf(format, args...)))
}

// known refuses keys that mean nothing.
func (r *simulationReader) known(doc *document.Map, what string, keys []string) {
	for key, v := range doc.All() {
		if !slices.Contains(keys, key) {
			r.fail(v, "%s is not a key of %s: want some of %s", key, what, strings.Join(keys, ", "))
		}
	}
}

// number returns the value of a key from least on, and its default if the key is missing.
func (r *simulationReader) number(doc *document.Map, key string, least, missing float64) float64 {
	v, ok := doc.Lookup(key)
	if !ok || v.IsNull() {
		if missing < least {
			r.errs = append(r.errs, fmt.Errorf("the key %s is missing", key))
		}
		return missing
	}
	n, ok := v.Float64()
	if i, whole := v.Int64(); whole {
		n, ok = float64(i), true
	}
	if !ok || !(n >= least && n <= 1e30) {
		r.fail(v, "%s: given %s, want a number from %v to 1e30", key, v.Describe(), least)
		return max(least, missing)
	}
	return n
}

// size returns a whole number from 1 on.
func (r *simulationReader) size(doc *document.Map, key string, missing int) int {
	v, ok := doc.Lookup(key)
	if !ok && missing > 0 {
		return missing
	}
	n, whole := v.Int64()
	if !whole || n < 1 || n > pipeline.MaxPasses {
		r.fail(v, "%s: given %s, want a number from 1 to %d", key, v.Describe(), pipeline.MaxPasses)
		return 1
	}
	return int(n)
}

// readSimulation returns what a pp_simulation.yaml asks for.
func (f *pipelineFlags) readSimulation(cmd *cobra.Command, formats *document.Formats) ([]request, error) {
	for _, flag := range []string{"schedules", "stages", "micro-batches", "chunks", "forward", "backward", "wgrad"} {
		if cmd.Flags().Changed(flag) {
			return nil, cli.Usagef(cmd, "--%s: given beside --config, which has the schedules with their sizes and times: want one of the two", flag)
		}
	}
	doc, err := readDocument(cmd.Context(), f.config, formats)
	if err != nil {
		return nil, err
	}
	r := simulationReader{send: f.send}
	r.known(doc, "a pp_simulation.yaml", simulationKeys)
	cost := pipeline.Cost{Forward: r.number(doc, "fwd_time", 0, -1), Backward: r.number(doc, "bwd_time", 0, -1), Weights: r.number(doc, "wgrad_time", 0, -1)}
	list, _ := doc.Lookup("schedulers")
	items, ok := list.List()
	if !ok || len(items) == 0 {
		r.fail(list, "schedulers: given %s, want a list", list.Describe())
	}
	var requests []request
	for _, item := range items {
		scheduler, ok := item.Map()
		if !ok {
			r.fail(item, "schedulers: given %s, want a mapping with name, class, pp_size, vpp_size and micro_batches", item.Describe())
			continue
		}
		requests = append(requests, r.scheduler(scheduler, item, cost, f.limit))
	}
	if len(r.errs) > 0 {
		return nil, fmt.Errorf("%s: %w", f.config, errors.Join(r.errs...))
	}
	return requests, nil
}

func (r *simulationReader) scheduler(doc *document.Map, item document.Value, cost pipeline.Cost, limit float64) request {
	r.known(doc, "a scheduler", schedulerKeys)
	class, _ := doc.Lookup("class")
	path, _ := class.Str()
	q := request{
		schedule: schedulerClasses[path[strings.LastIndex(path, ".")+1:]],
		stages:   r.size(doc, "pp_size", 0), microBatches: r.size(doc, "micro_batches", 0), chunks: r.size(doc, "vpp_size", 1),
		times: pipeline.Times{Ranks: []pipeline.Cost{cost}, Send: r.send}, limit: limit,
	}
	if name, ok := doc.Lookup("name"); ok {
		q.name, _ = name.Str()
	}
	switch memory, _ := doc.Lookup("memory_config"); q.schedule {
	case "":
		r.fail(item, "class: given %s, want one of Primus' classes such as Schedule1F1B", class.Describe())
	case "v-half":
		switch text, _ := memory.Str(); text {
		case "half":
		case "min":
			q.schedule = "v-min"
		default:
			r.fail(item, "memory_config: given %s, want half or min", memory.Describe())
		}
	case pipeline.Auto:
		if most := r.number(doc, "max_mem", 1, 1e30); most < 1e30 && (limit == 0 || most < limit) {
			q.limit = most
		}
		q.only = true
	}
	return q
}
