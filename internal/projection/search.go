package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/pipeline"
)

// Search looks for the settings of a model that train the most tokens per second on a cluster.
type Search struct {
	Name    string
	Params  *document.Map
	Cluster Cluster
	Rates   Rates
	Memory  float64 // of a device
	Margin  float64 // a fraction of the memory that stays free
	Reserve float64 // see [Plan.Memory]

	Schedules []Schedule // nil means all
	Recompute []string   // some of RecomputeNames, nil means all
	MaxChunks int        // of a stage; 0 means as many as there are layers
	Keep      []string   // parameters that stay as they are, some of SearchedParameters
	Top       int        // so many settings are found

	// Progress, if not nil, is told how many settings are left to look at.
	Progress func(left int)
}

// Found are settings that a search has found.
type Found struct {
	Settings    []string     `json:"settings"` // key=value, those that differ from the experiment
	Plan        *Plan        `json:"plan"`
	Performance *Performance `json:"performance"`
	Memory      float64      `json:"memory"` // of the stage that needs the most

	Overrides *document.Map `json:"-"` // all settings
}

// Reason says why settings are not among those found.
type Reason struct {
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"`
}

// Names of reasons.
const (
	reasonMemory = "memory"
	reasonSlower = "slower"
	reasonCut    = "cannot cut "
)

// Result is what a search has found.
type Result struct {
	Devices   int      `json:"devices"`
	Settings  int      `json:"settings"`  // that the devices can be cut into
	Projected int      `json:"projected"` // of them; the others are ruled out by bounds
	Best      []Found  `json:"best"`      // the fastest first
	Out       []Reason `json:"out"`
	// Smallest needs the least memory. It is there if nothing fits.
	Smallest *Found `json:"smallest,omitempty"`
}

// Names of kinds of recomputation, those that cost less time first.
const (
	RecomputeNone      = "none"
	RecomputeSelective = "selective"
	RecomputeFull      = "full"
	recomputeKept      = "kept"
)

// RecomputeNames returns the kinds of recomputation that a search tries, those that cost less time
// first.
func RecomputeNames() []string {
	return []string{RecomputeNone, RecomputeSelective, RecomputeFull}
}

// ScheduleNames returns the schedules that a search tries.
func ScheduleNames() []Schedule {
	return []Schedule{ScheduleOneForwardOneBackward, ScheduleInterleaved, ScheduleZeroBubble, ScheduleZeroBubbleV, ScheduleVHalf, ScheduleVMin}
}

// Parameters that a search sets.
const (
	keyTensor    = "tensor_model_parallel_size"
	keyPipeline  = "pipeline_model_parallel_size"
	keyContext   = "context_parallel_size"
	keyExpert    = "expert_model_parallel_size"
	keyMicro     = "micro_batch_size"
	keyVirtual   = "num_virtual_stages_per_pipeline_rank"
	keyAlgorithm = "pp_algorithm"
	keyRecompute = "recompute_granularity"
	keySequence  = "sequence_parallel"
)

// SearchedParameters returns the parameters that a search sets unless they are kept. With
// pp_algorithm the schedule and its chunks stay, and with recompute_granularity all of the
// recomputation.
func SearchedParameters() []string {
	return []string{keyTensor, keyPipeline, keyContext, keyExpert, keyMicro, keySequence, keyVirtual, keyAlgorithm, keyRecompute}
}

// KeptBy returns which of the searched parameters have to be kept so that a search does not change
// a parameter, "" for a parameter that it never changes.
func KeptBy(key string) string {
	switch {
	case slices.Contains(SearchedParameters(), key):
		return key
	case slices.Contains(virtualKeys, key):
		return keyVirtual
	case slices.Contains(scheduleKeys, key):
		return keyAlgorithm
	case slices.Contains(recomputeKeys, key):
		return keyRecompute
	}
	return ""
}

// Other parameters that say how a pipeline is cut, which schedule it has and what is recomputed.
var (
	cutKeys = []string{
		"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
		"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split",
	}
	layoutKeys   = []string{"pipeline_model_parallel_layout", "decoder_pipeline_manual_split_list"}
	virtualKeys  = []string{keyVirtual, "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage"}
	scheduleKeys = []string{
		"patch_zero_bubble", "patch_primus_pipeline", keyAlgorithm, "zero_bubble_v_schedule", "enable_1f1b_v",
	}
	recomputeKeys = []string{keyRecompute, "recompute_method", "recompute_num_layers", "recompute_modules", "recompute_layer_ids", "recompute_activations"}
)

// algorithms are the values of pp_algorithm.
var algorithms = map[Schedule]string{ScheduleZeroBubble: "zero-bubble", ScheduleZeroBubbleV: "zbv-formatted", ScheduleVHalf: "v-half", ScheduleVMin: "v-min"}

// shapeOfStages is how a pipeline is cut into chunks.
type shapeOfStages struct {
	virtual   int
	vee       bool
	accounted bool // embedding and loss count as a layer each
}

// cut is a way to divide a model and its batch over the devices.
type cut struct {
	tensor, pipeline, context, expert, micro int
	shapeOfStages
}

// candidate is a cut with a schedule and a kind of recomputation.
type candidate struct {
	cut
	schedule  Schedule
	recompute string
}

// Run searches all settings. What it finds is what a projection of each of them would find; most of
// them are ruled out by bounds of their time and memory.
func (s Search) Run(ctx context.Context) (*Result, error) {
	sp, err := newSpace(s)
	if err != nil {
		return nil, err
	}
	cuts, err := sp.cuts(ctx)
	if err != nil {
		return nil, err
	}
	if len(cuts) == 0 {
		return nil, fmt.Errorf("projection: %s cannot be cut over %d devices as the search may: %s", s.Name, sp.world, sp.refusals())
	}
	return sp.search(ctx, cuts)
}

// space is what a search goes through.
type space struct {
	Search
	world   int
	limit   float64 // of the memory
	keep    map[string]bool
	given   *Plan                   // the experiment itself, of which only parameters that are kept are used
	merged  bool                    // all schedules compute both gradients at once
	layout  bool                    // the experiment gives the layers of each stage
	known   map[int][]shapeOfStages // by number of pipeline stages
	refused map[string]*Reason
	tables  *tables
}

func newSpace(s Search) (*space, error) {
	sp := &space{Search: s, world: s.Cluster.Nodes * s.Cluster.DevicesPerNode, limit: s.Memory * (1 - s.Margin), keep: map[string]bool{}, known: map[int][]shapeOfStages{}, refused: map[string]*Reason{}, tables: newTables()}
	if sp.Schedules == nil {
		sp.Schedules = ScheduleNames()
	}
	if sp.Recompute == nil {
		sp.Recompute = RecomputeNames()
	}
	sp.Top = max(sp.Top, 1)
	var faults []error
	if s.Cluster.Nodes < 1 || s.Cluster.DevicesPerNode < 1 || s.Cluster.Nodes > maxLayers || s.Cluster.DevicesPerNode > maxLayers {
		faults = append(faults, fmt.Errorf("projection: given %d nodes of %d devices, want numbers from 1 to %d", s.Cluster.Nodes, s.Cluster.DevicesPerNode, maxLayers))
	}
	for _, name := range sp.Schedules {
		if !slices.Contains(ScheduleNames(), name) {
			faults = append(faults, fmt.Errorf("projection: given the schedule %q, want some of %v", name, ScheduleNames()))
		}
	}
	for _, name := range sp.Recompute {
		if !slices.Contains(RecomputeNames(), name) {
			faults = append(faults, fmt.Errorf("projection: given the recomputation %q, want some of %v", name, RecomputeNames()))
		}
	}
	for _, key := range sp.Keep {
		if !slices.Contains(SearchedParameters(), key) {
			faults = append(faults, fmt.Errorf("projection: given %q to keep, want some of %v", key, SearchedParameters()))
		}
		sp.keep[key] = true
	}
	if !(s.Memory > 0) {
		faults = append(faults, errors.New("projection: given no memory of a device, want a size above 0"))
	}
	if s.MaxChunks < 0 || s.MaxChunks > pipeline.MaxChunks {
		faults = append(faults, fmt.Errorf("projection: given at most %d chunks, want a number from 1 to %d, or 0", s.MaxChunks, pipeline.MaxChunks))
	}
	r := &reader{params: s.Params}
	for _, key := range []string{keyTensor, keyPipeline, keyContext, keyExpert, keyMicro} {
		if sp.keep[key] {
			r.size(key, 1)
		}
	}
	if r.count("global_batch_size") == 0 {
		faults = append(faults, errors.New("projection: global_batch_size is missing: want a number, because settings are compared with the same batch"))
	}
	faults = append(faults, s.Rates.Validate(), r.err())
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	// The sizes of the model, and what is kept. One device can always be cut.
	sizes := map[string]any{keyTensor: nil, keyPipeline: nil, keyContext: nil, keyExpert: nil, "expert_tensor_parallel_size": nil, keyMicro: nil}
	for _, key := range slices.Concat(cutKeys, layoutKeys, virtualKeys, scheduleKeys) {
		sizes[key] = nil
	}
	whole, err := document.FromGo(sizes)
	if err != nil {
		return nil, fmt.Errorf("projection: %w", err)
	}
	over, _ := whole.Map()
	if sp.given, err = read(s.Name, s.Params, over, Cluster{Nodes: 1, DevicesPerNode: 1}); err != nil {
		return nil, err
	}
	for _, key := range layoutKeys {
		_, ok := r.lookup(key)
		sp.layout = sp.layout || ok
	}
	sp.merged = !sp.keep[keyAlgorithm]
	for _, name := range sp.Schedules {
		sp.merged = sp.merged && name.merged()
	}
	slices.SortFunc(sp.Recompute, func(a, b string) int {
		return slices.Index(RecomputeNames(), a) - slices.Index(RecomputeNames(), b)
	})
	sp.Recompute = slices.Compact(sp.Recompute)
	if sp.keep[keyRecompute] {
		sp.Recompute = []string{recomputeKept}
	}
	return sp, nil
}

// merged reports whether a schedule computes the gradients of inputs and weights at once.
func (s Schedule) merged() bool {
	return s == ScheduleOneForwardOneBackward || s == ScheduleInterleaved
}

// refuse counts sizes that the devices cannot be cut into.
func (sp *space) refuse(err error) {
	reason := "settings"
	if e, ok := errors.AsType[*parameterError](err); ok {
		reason = e.key
	}
	reason = reasonCut + reason
	if sp.refused[reason] == nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		sp.refused[reason] = &Reason{Reason: reason, Example: strings.TrimPrefix(text, "projection: ")}
	}
	sp.refused[reason].Count++
}

// refusals says why nothing can be cut.
func (sp *space) refusals() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(sp.refused)) {
		texts = append(texts, sp.refused[name].Example)
	}
	return strings.Join(texts, "; ")
}

// divisors returns the numbers that divide n, the smallest first.
func divisors(n int) []int {
	var small, large []int
	for d := 1; d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		small = append(small, d)
		if d != n/d {
			large = append(large, n/d)
		}
	}
	slices.Reverse(large)
	return append(small, large...)
}

// sizes returns the sizes of a parameter to try: the divisors of n, or the one that is kept.
func (sp *space) sizes(key string, n int) []int {
	if !sp.keep[key] {
		return divisors(n)
	}
	return []int{(&reader{params: sp.Params}).size(key, 1)}
}

// cuts returns all ways to divide the model, and counts those that are not possible.
func (sp *space) cuts(ctx context.Context) ([]cut, error) {
	batch := (&reader{params: sp.Params}).count("global_batch_size")
	var list []cut
	for _, tensor := range sp.sizes(keyTensor, sp.world) {
		for _, pipe := range sp.sizes(keyPipeline, sp.world/gcd(sp.world, tensor)) {
			for _, context := range sp.sizes(keyContext, sp.world/gcd(sp.world, tensor*pipe)) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				for _, expert := range sp.sizes(keyExpert, max(sp.given.Model.Experts, 1)) {
					c := cut{tensor: tensor, pipeline: pipe, context: context, expert: expert, micro: 1}
					if sp.keep[keyMicro] {
						c.micro = sp.sizes(keyMicro, 1)[0]
					}
					shapes, err := sp.shapes(c)
					if err != nil {
						sp.refuse(err)
						continue
					}
					replicas := sp.world / (tensor * pipe * context)
					for _, shape := range shapes {
						c.shapeOfStages = shape
						for _, c.micro = range sp.sizes(keyMicro, batch/replicas) {
							if err := c.tableExists(batch / replicas / c.micro); err != nil {
								sp.refuse(err)
								continue
							}
							list = append(list, c)
						}
					}
				}
			}
		}
	}
	return list, nil
}

// tableExists returns an error if no table of a schedule is as large as a cut needs.
func (c cut) tableExists(microBatches int) error {
	p := Parallel{Pipeline: c.pipeline, MicroBatches: microBatches}
	s := pipeline.Shape{Ranks: c.pipeline, MicroBatches: p.simulated(), Chunks: c.virtual, Placement: pipeline.Loop}
	if err := s.Validate(); err != nil {
		return &parameterError{keyPipeline, strings.TrimPrefix(err.Error(), "pipeline: ")}
	}
	return nil
}

// shapes returns the possible shapes of the stages of a cut, and an error where there are none.
func (sp *space) shapes(c cut) ([]shapeOfStages, error) {
	try := func(s shapeOfStages) (*Plan, error) {
		c.shapeOfStages = s
		schedule := ScheduleOneForwardOneBackward
		if possible := sp.schedules(c); len(possible) > 0 {
			schedule = possible[0]
		}
		return sp.read(candidate{cut: c, schedule: schedule, recompute: sp.Recompute[0]})
	}
	possible := func(s shapeOfStages) bool {
		return len(sp.schedules(cut{pipeline: c.pipeline, shapeOfStages: s})) > 0
	}
	none := func(chunks string) error {
		return &parameterError{keyVirtual, fmt.Sprintf("none of the schedules %v has %s for each of %d pipeline stages", sp.Schedules, chunks, c.pipeline)}
	}
	if known := sp.known[c.pipeline]; known != nil {
		_, err := try(known[0])
		return known, err
	}
	var found []shapeOfStages
	if sp.layout || sp.keep[keyAlgorithm] || c.pipeline == 1 {
		p, err := try(shapeOfStages{virtual: 1})
		if err != nil {
			return nil, err
		}
		s := shapeOfStages{virtual: p.Parallel.Virtual, vee: p.Parallel.Schedule.vee()}
		if possible(s) {
			found = append(found, s)
		}
		if both := (shapeOfStages{virtual: s.virtual, vee: true}); !s.vee && s.virtual == 2 && !sp.keep[keyAlgorithm] && possible(both) {
			found = append(found, both)
		}
		if len(found) == 0 {
			return nil, none(fmt.Sprintf("the %d chunks of the layout", s.virtual))
		}
		sp.known[c.pipeline] = found
		return found, nil
	}
	var first error
	for _, virtual := range sp.chunks(c.pipeline) {
		for _, vee := range []bool{false, true} {
			s := shapeOfStages{virtual: virtual, vee: vee}
			if !possible(s) {
				continue
			}
			_, err := try(s)
			if e, ok := errors.AsType[*parameterError](err); ok && e.key != "num_layers" {
				return nil, err
			}
			if err != nil && sp.even() {
				s.accounted = true
				if _, again := try(s); again == nil {
					err = nil
				}
			}
			if err == nil {
				found = append(found, s)
			} else if first == nil {
				first = err
			}
		}
	}
	if len(found) == 0 {
		return nil, cmp.Or(first, none("the chunks"))
	}
	sp.known[c.pipeline] = found
	return found, nil
}

// chunks returns the numbers of chunks to try for each of some pipeline stages.
func (sp *space) chunks(stages int) []int {
	if sp.keep[keyVirtual] {
		r := &reader{params: sp.Params}
		return []int{r.virtualStages(sp.given.Model, Parallel{Pipeline: stages})}
	}
	layers := sp.given.Model.Layers
	if sp.even() {
		layers += 2
	}
	most := min(max(layers/stages, 1), pipeline.MaxChunks)
	if sp.MaxChunks > 0 {
		most = min(most, sp.MaxChunks)
	}
	list := make([]int, most)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// even reports whether the experiment says nothing of how layers are cut into stages.
func (sp *space) even() bool {
	r := &reader{params: sp.Params}
	return !slices.ContainsFunc(cutKeys, func(key string) bool {
		v, ok := r.lookup(key)
		b, isFlag := v.Bool()
		return ok && !(isFlag && !b)
	})
}

// schedules returns the schedules that a cut can have.
func (sp *space) schedules(c cut) []Schedule {
	if c.pipeline == 1 || sp.keep[keyAlgorithm] {
		return []Schedule{ScheduleOneForwardOneBackward}
	}
	var list []Schedule
	for _, s := range sp.Schedules {
		fits := c.virtual == 1 // zero bubble, 1F1B
		switch {
		case s.vee():
			fits = c.vee && c.virtual == 2
		case s == ScheduleInterleaved:
			fits = !c.vee && c.virtual > 1
		}
		if fits && s.vee() == c.vee {
			list = append(list, s)
		}
	}
	return list
}

// overrides returns the parameters of a candidate.
func (sp *space) overrides(c candidate) *document.Map {
	var b document.Builder
	set := func(key string, value any) {
		if v, err := document.FromGo(value); err == nil {
			b.Set(key, v)
		}
	}
	drop := func(keys []string, but ...string) {
		for _, key := range keys {
			if v, ok := sp.Params.Lookup(key); ok && !v.IsNull() && !slices.Contains(but, key) {
				set(key, nil)
			}
		}
	}
	set(keyTensor, c.tensor)
	set(keyPipeline, c.pipeline)
	set(keyContext, c.context)
	if sp.given.Model.Experts > 0 {
		set(keyExpert, c.expert)
	}
	set(keyMicro, c.micro)
	if !sp.keep[keySequence] {
		set(keySequence, c.tensor > 1)
	}
	if c.accounted {
		set(cutKeys[2], true)
		set(cutKeys[3], true)
	}
	if !sp.keep[keyAlgorithm] {
		algorithm, patched := algorithms[c.schedule]
		if !sp.layout && !sp.keep[keyVirtual] {
			if c.virtual > 1 {
				drop(virtualKeys, keyVirtual)
				set(keyVirtual, c.virtual)
			} else {
				drop(virtualKeys)
			}
		}
		if patched {
			drop(scheduleKeys, "patch_primus_pipeline", keyAlgorithm)
			set("patch_primus_pipeline", true)
			set(keyAlgorithm, algorithm)
		} else {
			drop(scheduleKeys)
		}
	}
	switch c.recompute {
	case RecomputeNone:
		drop(recomputeKeys)
	case RecomputeSelective:
		drop(recomputeKeys, keyRecompute, "recompute_modules")
		set(keyRecompute, RecomputeSelective)
	case RecomputeFull:
		drop(recomputeKeys, keyRecompute, "recompute_method", "recompute_num_layers")
		set(keyRecompute, RecomputeFull)
		set("recompute_method", "uniform")
		set("recompute_num_layers", 1)
	}
	return b.Map()
}

// read returns the plan of a candidate, without micro batches in flight.
func (sp *space) read(c candidate) (*Plan, error) {
	return read(sp.Name, sp.Params, sp.overrides(c), sp.Cluster)
}

// found returns what is to be said of a candidate.
func (sp *space) found(r rated) (*Found, error) {
	over := sp.overrides(r.candidate)
	perf, err := r.plan.Performance(sp.Rates)
	if err != nil {
		return nil, err
	}
	r.plan.params = document.Merge(sp.Params, over)
	return &Found{Settings: changed(sp.Params, over), Plan: r.plan, Performance: perf, Memory: r.memory, Overrides: over}, nil
}

// changed lists the overrides that change parameters, as key=value.
func changed(params, overrides *document.Map) []string {
	var list []string
	for key, v := range overrides.All() {
		if old, ok := params.Lookup(key); ok && old.Equal(v) {
			continue
		}
		list = append(list, key+"="+v.Text())
	}
	return list
}
