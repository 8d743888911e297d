package pipeline_test

import (
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/pipeline"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// FuzzSchedule reads schedules: one that is accepted is a schedule, with as many passes as it says,
// and reading costs in proportion to the length.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{
		"{micro_batches: 2, stages: [F0 F1 BW0 BW1, F0 BW0 F1 BW1]}", "{name: a, placement: v, micro_batches: 1, chunks: 2, stages: [[F0, F0.1, B0.1, W0.1, B0, W0]]}",
		"{micro_batches: 1000000, chunks: 1000000, stages: [F0]}", "{micro_batches: 1, stages: [F999999999.9999]}", "{micro_batches: 1, stages: [[1], {}, null]}", "{stages: []}", "{micro_batches: 1, stages: [BW0 F0]}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, _, err := document.Parse(t.Context(), formats.YAML{}, "schedule.yaml", text)
		if err != nil {
			return
		}
		doc, ok := root.Map()
		if !ok {
			return
		}
		var table pipeline.Table
		primustest.Cost(t, len(text), 20_000, func() { table, err = pipeline.Parse(doc) })
		if err != nil {
			return
		}
		require.NoError(t, pipeline.Check(table, 0))
		passes := 0
		for _, stage := range table.Passes {
			passes += len(stage)
		}
		require.LessOrEqual(t, 2*table.MicroBatches*table.Chunks, passes)
		require.LessOrEqual(t, passes, len(text))
	})
}
