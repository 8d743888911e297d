package serve

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

type curveQuery struct {
	Name string `path:"name"`
	From int    `query:"from" default:"0" minimum:"0" doc:"steps from this one on"`
}

func (s *Server) registerRuns() {
	get(s, "list-runs", "/v1/runs", "List the runs of this process", func(context.Context, *nothing) ([]Run, error) { return s.set.Board.runs(), nil })
	get(s, "get-curve", "/v1/runs/{name}/steps", "List steps of a run; of a long one not every step is kept", func(_ context.Context, in *curveQuery) ([]Point, error) {
		for _, r := range s.set.Board.runs() {
			if r.Name == in.Name {
				return s.set.Board.curve(in.From), nil
			}
		}
		return nil, huma.Error404NotFound("there is no run " + in.Name + "; /v1/runs lists what there is")
	})
}
