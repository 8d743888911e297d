package stages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/pipeline"
)

// Pipeline are the parameters of a pipeline beside the number of its stages.
type Pipeline struct {
	VirtualStages    int    `param:"num_virtual_stages_per_pipeline_rank"`  // chunks of each stage; 0 means as many as the schedule or the layout has
	LayersPerVirtual int    `param:"num_layers_per_virtual_pipeline_stage"` // the same by the layers of a chunk; 0 means by VirtualStages
	Layout           string `param:"pipeline_model_parallel_layout"`        // such as Et*3|(tt|)*29,t|L; "" means as many layers in each chunk, auto an even cost
	Algorithm        string `param:"pp_algorithm"`                          // "" means 1f1b, or interleaved with several chunks
}

// LayoutAuto is the layout that divides the layers by their cost.
const LayoutAuto = "auto"

// ByDefault reports whether nothing of a pipeline is asked for.
func (c Pipeline) ByDefault() bool {
	return c.VirtualStages <= 1 && c.LayersPerVirtual == 0 && c.Layout == ""
}

// aliases are Primus' names of schedules.
func aliases() map[string]string {
	return map[string]string{"1f1b-interleaved": "interleaved", "zero-bubble": "zb1p", "zero-bubble-heuristic": "zb1p", "zbv-formatted": "zbv"}
}

// ScheduleNames returns the values of pp_algorithm, those of Primus last.
func ScheduleNames() []string {
	var others []string
	for name := range aliases() {
		others = append(others, name)
	}
	slices.Sort(others)
	return append(pipeline.Names(), others...)
}

// schedule returns the name of the schedule and its number of chunks.
func (c Pipeline) schedule(stages, layers, parts int) (name string, chunks int, err error) {
	name = strings.ToLower(c.Algorithm)
	name = cmp.Or(aliases()[name], name)
	if name != "" && !slices.Contains(pipeline.Names(), name) {
		return "", 0, fmt.Errorf("pp_algorithm: given %q, want one of %s", c.Algorithm, strings.Join(ScheduleNames(), ", "))
	}
	switch {
	case c.VirtualStages < 0:
		return "", 0, fmt.Errorf("num_virtual_stages_per_pipeline_rank: given %d, want a number >= 1", c.VirtualStages)
	case c.LayersPerVirtual < 0 || c.LayersPerVirtual > 0 && layers%(stages*c.LayersPerVirtual) != 0:
		return "", 0, fmt.Errorf("num_layers_per_virtual_pipeline_stage: given %d, want a number that divides num_layers %d into chunks for %d stages", c.LayersPerVirtual, layers, stages)
	}
	asked := []struct {
		key    string
		chunks int
	}{{"num_virtual_stages_per_pipeline_rank", c.VirtualStages}, {"num_layers_per_virtual_pipeline_stage", 0}, {"pipeline_model_parallel_layout", parts / stages}}
	if c.LayersPerVirtual > 0 {
		asked[1].chunks = layers / stages / c.LayersPerVirtual
	}
	by := ""
	for _, a := range asked {
		if a.chunks > 0 && chunks > 0 && a.chunks != chunks {
			return "", 0, fmt.Errorf("%s: given %d chunks for each stage, and %s gives %d: want one of them", a.key, a.chunks, by, chunks)
		}
		if a.chunks > 0 {
			chunks, by = a.chunks, a.key
		}
	}
	if name == "" {
		if name = "1f1b"; chunks > 1 {
			name = "interleaved"
		}
	}
	usual := pipeline.Chunks(name, cmp.Or(chunks, defaultChunks(name)))
	if chunks > 0 && usual != chunks && name != "zb1p" {
		return "", 0, fmt.Errorf("%s: given %d chunks for each stage, want %d for pp_algorithm %s", by, chunks, usual, name)
	}
	if chunks = cmp.Or(chunks, usual); name == "interleaved" && chunks == 1 {
		return "", 0, fmt.Errorf("pp_algorithm: given %s with one chunk for each stage, want num_virtual_stages_per_pipeline_rank of 2 or more", cmp.Or(c.Algorithm, name))
	}
	return name, chunks, nil
}

// defaultChunks is the number of chunks of a schedule that could have any.
func defaultChunks(name string) int {
	if name == "interleaved" {
		return 2
	}
	return 1
}

// Costs are those of the parts of a model, in one unit.
type Costs struct{ Embedding, Layer, Head float64 }

// Plan is how a model is divided into stages, and in which order these compute.
type Plan struct {
	Name   string // of the schedule
	Stages int
	Chunks int             // of each stage
	Parts  []model.Stretch // in the order of the model
	Apart  bool            // gradients of weights may be computed apart from those of inputs

	placement pipeline.Placement
	costs     Costs
	programs  map[int]pipeline.Program // by the number of micro batches, as far as they were made
}

// Plan divides a model of so many layers.
func (c Pipeline) Plan(stages, layers int, costs Costs) (*Plan, error) {
	var parts []model.Stretch
	var err error
	if c.Layout != "" && !strings.EqualFold(c.Layout, LayoutAuto) {
		if parts, err = ParseLayout(c.Layout, stages, layers); err != nil {
			return nil, fmt.Errorf("pipeline_model_parallel_layout: %w", err)
		}
	}
	p := &Plan{Stages: stages, costs: costs, programs: map[int]pipeline.Program{}}
	if p.Name, p.Chunks, err = c.schedule(stages, layers, len(parts)); err != nil {
		return nil, err
	}
	if p.placement = pipeline.PlacementOf(p.Name); parts == nil {
		n := stages * p.Chunks
		even := Divide(n, layers, costs)
		switch {
		case strings.EqualFold(c.Layout, LayoutAuto) && even != nil:
			parts = even
		case layers%n == 0:
			parts = equal(n, layers)
		case even == nil:
			return nil, fmt.Errorf("num_layers: given %d, want at least one for each of %d stages with %s", layers, stages, chunks(p.Chunks))
		default:
			return nil, fmt.Errorf("num_layers: given %d, want a multiple of %d, which is pipeline_model_parallel_size %d with %s each, or pipeline_model_parallel_layout auto, which is %s",
				layers, n, stages, chunks(p.Chunks), Text(even))
		}
	}
	p.Parts, p.Apart = parts, !slices.Contains([]string{"gpipe", "1f1b", "interleaved"}, p.Name)
	return p, nil
}

// chunks writes a number of chunks.
func chunks(n int) string {
	if n == 1 {
		return "1 chunk"
	}
	return strconv.Itoa(n) + " chunks"
}

// shape is the size of the table of some micro batches.
func (p *Plan) shape(microBatches int) pipeline.Shape {
	return pipeline.Shape{Ranks: p.Stages, MicroBatches: microBatches, Chunks: p.Chunks, Placement: p.placement}
}

// Of returns what a stage computes, in the order of the model.
func (p *Plan) Of(stage int) []model.Stretch {
	var own []model.Stretch
	for chunk := range p.Chunks {
		own = append(own, p.Parts[p.shape(1).Depth(stage, chunk)])
	}
	return own
}

// cost returns how long the forward pass of a part takes.
func (c Costs) cost(s model.Stretch) float64 {
	sum := c.Layer * float64(s.Layers.Hi-s.Layers.Lo)
	if s.First {
		sum += c.Embedding
	}
	if s.Last {
		sum += c.Head
	}
	return sum
}

// times are those of the chunks, in which the gradients of inputs and of weights take as long as
// the forward pass.
func (p *Plan) times() pipeline.Times {
	s := p.shape(1)
	all := make([][]pipeline.Cost, p.Stages)
	for stage := range all {
		for chunk := range p.Chunks {
			f := p.costs.cost(p.Parts[s.Depth(stage, chunk)])
			all[stage] = append(all[stage], pipeline.Cost{Forward: f, Backward: f, Weights: f})
		}
	}
	return pipeline.Times{Chunks: all}
}

// Table returns the passes of a step of so many micro batches.
func (p *Plan) Table(microBatches int) (pipeline.Table, error) {
	if p.Name == pipeline.Auto {
		return pipeline.SearchShape(p.shape(microBatches), p.times(), 0)
	}
	t, err := pipeline.Generate(p.Name, p.Stages, microBatches, p.Chunks, p.times())
	if errors.Is(err, pipeline.ErrMicroBatches) {
		return t, fmt.Errorf("global_batch_size: given %d micro batches for each pipeline, want at least %d for pp_algorithm %s on %d stages", microBatches, 2*p.Stages, p.Name, p.Stages)
	}
	return t, err
}

// Schedule returns what a stage does in a step of so many micro batches.
func (p *Plan) Schedule(stage, microBatches int) (*Schedule, error) {
	program, made := p.programs[microBatches]
	if !made {
		t, err := p.Table(microBatches)
		if err != nil {
			return nil, err
		}
		if program, err = pipeline.Compile(t, 0); err != nil {
			return nil, err
		}
		p.programs[microBatches] = program
	}
	return New(program, stage), nil
}
