package projection

import (
	"fmt"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/pipeline"
)

// Chunk is what a pipeline rank computes in one go. With virtual stages a rank has several.
type Chunk struct {
	Layers    []int `json:"layers"`
	MTP       int   `json:"mtp_layers,omitempty"`
	Embedding bool  `json:"embedding,omitempty"`
	Loss      bool  `json:"loss,omitempty"`
}

// stages returns the chunks of every pipeline rank, and sets the number of virtual stages.
func (r *reader) stages(m Model, p *Parallel) [][]Chunk {
	if layout, ok := r.lookup("pipeline_model_parallel_layout"); ok {
		return r.layoutStages(layout, m, p)
	}
	p.Virtual = r.virtualStages(m, *p)
	if p.Schedule.vee() && p.Virtual == 1 {
		p.Virtual = 2
	}
	r.checkVee(*p)
	if p.Virtual > 1 && p.Schedule == ScheduleOneForwardOneBackward {
		p.Schedule = ScheduleInterleaved
	}
	counts := r.chunkSizes(m, *p)
	stages := make([][]Chunk, p.Pipeline)
	next := 0
	for i, n := range counts {
		var chunk Chunk
		for range n {
			chunk.Layers = append(chunk.Layers, next)
			next++
		}
		chunk.Embedding = i == 0
		if chunk.Loss = i == len(counts)-1; chunk.Loss {
			chunk.MTP = m.ExtraMTP
		}
		rank := p.rankOf(i)
		stages[rank] = append(stages[rank], chunk)
	}
	if next != m.Layers && len(r.errs) == 0 {
		r.fail(fmt.Errorf("projection: the pipeline stages have %d layers, and num_layers is %d", next, m.Layers))
	}
	return stages
}

// checkVee refuses a V with another number of chunks than 2.
func (r *reader) checkVee(p Parallel) {
	if p.Schedule.vee() && p.Virtual != 2 {
		r.fail(fmt.Errorf("projection: given %d virtual stages for %s, want 2: one each way", p.Virtual, p.Schedule))
	}
}

// virtualStages returns the chunks per pipeline rank.
func (r *reader) virtualStages(m Model, p Parallel) int {
	if n := r.size("num_virtual_stages_per_pipeline_rank", 1); n > 1 {
		return min(n, m.Layers)
	}
	if n := r.size("virtual_pipeline_model_parallel_size", 1); n > 1 {
		return min(n, m.Layers)
	}
	if n := r.count("num_layers_per_virtual_pipeline_stage"); n > 0 {
		if m.Layers%(n*p.Pipeline) != 0 {
			r.failAt("num_layers_per_virtual_pipeline_stage", "want a size that cuts num_layers %d over %d pipeline stages", m.Layers, p.Pipeline)
			return 1
		}
		return m.Layers / (n * p.Pipeline)
	}
	return 1
}

// chunkSizes returns the layers of every chunk, in the order of the model.
func (r *reader) chunkSizes(m Model, p Parallel) []int {
	chunks := p.Pipeline * p.Virtual
	if list := r.list("decoder_pipeline_manual_split_list"); list != nil {
		counts := make([]int, 0, chunks)
		for _, v := range list {
			n, ok := v.Int64()
			if !ok || n < 0 || n > maxLayers {
				r.failAt("decoder_pipeline_manual_split_list", "want a list of numbers")
				return nil
			}
			counts = append(counts, int(n))
		}
		if len(counts) != chunks {
			r.failAt("decoder_pipeline_manual_split_list", "want a number for each of the %d stages", chunks)
		}
		return counts
	}
	first, last := r.count("decoder_first_pipeline_num_layers"), r.count("decoder_last_pipeline_num_layers")
	byEmbedding, byLoss := r.flag("account_for_embedding_in_pipeline_split"), r.flag("account_for_loss_in_pipeline_split")
	rest, ranks := m.Layers, p.Pipeline
	for _, n := range []int{first, last} {
		if n > 0 {
			rest -= n
			ranks--
		}
	}
	if byEmbedding {
		rest++
	}
	if byLoss {
		rest++
	}
	even := 0
	if rest < 0 || ranks < 0 || ranks == 0 && rest > 0 || ranks > 0 && rest%(ranks*p.Virtual) != 0 {
		r.failOf("num_layers", "num_layers %d cannot be cut evenly over %d pipeline stages with %d chunks each: give decoder_first_pipeline_num_layers, decoder_last_pipeline_num_layers or pipeline_model_parallel_layout",
			m.Layers, p.Pipeline, p.Virtual)
		return nil
	}
	if ranks > 0 {
		even = rest / (ranks * p.Virtual)
	}
	counts := make([]int, chunks)
	for i := range counts {
		counts[i] = even
		switch rank := p.rankOf(i); {
		case rank == 0 && first > 0:
			counts[i] = first / p.Virtual
		case rank == p.Pipeline-1 && last > 0:
			counts[i] = last / p.Virtual
		}
	}
	if byEmbedding {
		counts[0]--
	}
	if byLoss {
		counts[chunks-1]--
	}
	return counts
}

// layoutStages reads a layout such as Et*3|(tt|)*29,m|L: E is the embedding, t a layer, m one of
// multi-token prediction, L the loss, and | ends a chunk.
func (r *reader) layoutStages(layout document.Value, m Model, p *Parallel) [][]Chunk {
	const key = "pipeline_model_parallel_layout"
	var rows []string
	if list, ok := layout.List(); ok {
		names := map[string]string{"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
		for _, row := range list {
			items, _ := row.List()
			var b strings.Builder
			for _, item := range items {
				name, _ := item.Str()
				b.WriteString(names[strings.ToLower(strings.TrimSpace(name))])
			}
			rows = append(rows, b.String())
		}
	} else {
		text, _ := layout.Str()
		var err error
		if rows, err = pipeline.Layout(text); err != nil {
			r.failAt(key, "want letters E, t, m and L with | between stages: %v", err)
			return nil
		}
	}
	if len(rows)%p.Pipeline != 0 {
		r.failAt(key, "want a multiple of pipeline_model_parallel_size %d stages, not %d", p.Pipeline, len(rows))
		return nil
	}
	p.Virtual = len(rows) / p.Pipeline
	r.checkVee(*p)
	if p.Virtual > 1 && p.Schedule == ScheduleOneForwardOneBackward {
		p.Schedule = ScheduleInterleaved
	}
	stages := make([][]Chunk, p.Pipeline)
	next, mtp := 0, 0
	for i, row := range rows {
		var chunk Chunk
		for _, letter := range row {
			switch letter {
			case 'E':
				chunk.Embedding = true
			case 't':
				chunk.Layers = append(chunk.Layers, next)
				next++
			case 'm':
				chunk.MTP++
				mtp++
			case 'L':
				chunk.Loss = true
			default:
				r.failAt(key, "want the letters E, t, m and L, not %q", string(letter))
				return nil
			}
		}
		rank := p.rankOf(i)
		stages[rank] = append(stages[rank], chunk)
	}
	if next != m.Layers || mtp != m.ExtraMTP {
		r.failAt(key, "want %d layers and %d of multi-token prediction, not %d and %d", m.Layers, m.ExtraMTP, next, mtp)
	}
	return stages
}
