package stages_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/stages"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cost returns what a part costs.
func cost(c stages.Costs, s model.Stretch) float64 {
	sum := c.Layer * float64(s.Layers.Hi-s.Layers.Lo)
	if s.First {
		sum += c.Embedding
	}
	if s.Last {
		sum += c.Head
	}
	return sum
}

// cheapest returns the cost of the most expensive part in the best of all divisions.
func cheapest(n, layers int, c stages.Costs, part int) float64 {
	if part == n-1 {
		return cost(c, model.Stretch{Layers: model.Range{Hi: layers}, First: part == 0, Last: true})
	}
	best := math.Inf(1)
	for count := 1; count <= layers-(n-1-part); count++ {
		own := cost(c, model.Stretch{Layers: model.Range{Hi: count}, First: part == 0})
		best = min(best, max(own, cheapest(n, layers-count, c, part+1)))
	}
	return best
}

// No division is better than that of Divide, and its text is a layout for the same parts.
func TestDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n, layers := 1+rng.IntN(5), 1+rng.IntN(10)
		c := stages.Costs{Embedding: rng.Float64(), Layer: rng.Float64() + 0.1, Head: 4 * rng.Float64()}
		parts := stages.Divide(n, layers, c)
		if layers < n {
			assert.Nil(t, parts)
			continue
		}
		most := 0.0
		for _, p := range parts {
			most = max(most, cost(c, p))
		}
		assert.InDelta(t, cheapest(n, layers, c, 0), most, 1e-9)
		again, err := stages.ParseLayout(stages.Text(parts), n, layers)
		require.NoError(t, err)
		assert.Equal(t, parts, again)
	}
}

// What no pipeline can be made of is named.
func TestPlanErrors(t *testing.T) {
	for _, tt := range []struct {
		give           stages.Pipeline
		stages, layers int
		want           string
	}{
		{stages.Pipeline{}, 3, 8, "num_layers: given 8, want a multiple of 3, which is pipeline_model_parallel_size 3 with 1 chunk each, or pipeline_model_parallel_layout auto, which is Et*3|t*3|t*2L"},
		{stages.Pipeline{}, 4, 3, "num_layers: given 3, want at least one for each of 4 stages"},
		{stages.Pipeline{Algorithm: "dapple"}, 2, 8, `pp_algorithm: given "dapple", want one of gpipe, 1f1b`},
		{stages.Pipeline{Algorithm: "zbv-formatted", VirtualStages: 3}, 2, 12, "num_virtual_stages_per_pipeline_rank: given 3 chunks for each stage, want 2 for pp_algorithm zbv"},
		{stages.Pipeline{Algorithm: "gpipe", LayersPerVirtual: 2}, 2, 8, "num_layers_per_virtual_pipeline_stage: given 2 chunks for each stage, want 1 for pp_algorithm gpipe"},
		{stages.Pipeline{LayersPerVirtual: 3}, 2, 8, "num_layers_per_virtual_pipeline_stage: given 3, want a number that divides num_layers 8"},
		{stages.Pipeline{VirtualStages: 2, LayersPerVirtual: 1}, 2, 8, "num_layers_per_virtual_pipeline_stage: given 4 chunks for each stage, and num_virtual_stages_per_pipeline_rank gives 2"},
		{stages.Pipeline{VirtualStages: -1}, 2, 8, "num_virtual_stages_per_pipeline_rank: given -1"},
		{stages.Pipeline{Algorithm: "interleaved", VirtualStages: 1}, 2, 8, "pp_algorithm: given interleaved with one chunk for each stage"},
		{stages.Pipeline{Layout: "Et*4|t*3L"}, 2, 8, "with 7 layers (t), want num_layers 8"},
		{stages.Pipeline{Layout: "Et*4||t*4L"}, 3, 8, "in which part 1 is empty"},
		{stages.Pipeline{Layout: "Et*4|t*2|t*2L"}, 2, 8, "with 3 parts, want a multiple of pipeline_model_parallel_size 2"},
		{stages.Pipeline{Layout: "t*4|t*4L"}, 2, 8, "want E at the very beginning and L at the very end"},
		{stages.Pipeline{Layout: "Et*4|mt*4L"}, 2, 8, "with 'm' at position 0 of part 1"},
		{stages.Pipeline{Layout: "E(tt|*2L"}, 2, 8, "pipeline_model_parallel_layout: given "},
	} {
		_, err := tt.give.Plan(tt.stages, tt.layers, stages.Costs{Layer: 1, Head: 1})
		require.Error(t, err, "%+v", tt.give)
		assert.ErrorContains(t, err, tt.want)
	}
	plan, err := stages.Pipeline{Algorithm: "dualpipe-v"}.Plan(4, 8, stages.Costs{Layer: 1})
	require.NoError(t, err)
	_, err = plan.Schedule(0, 7)
	assert.ErrorContains(t, err, "global_batch_size: given 7 micro batches for each pipeline, want at least 8 for pp_algorithm dualpipe-v on 4 stages")
}
