package serve

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/primus-fl/primus/internal/runs"
)

// Runs are the runs that a Server shows. The methods that take an id report whether it names one of
// them.
type Runs interface {
	Runs() []runs.Run
	Curve(id string, from int) ([]runs.Point, bool)
	Uses(id string) ([]runs.Use, bool)
	Log(id string, lines int) ([]byte, bool)
}

// Operator acts on the run of this process for requests with a token. A nil function means that
// there is no run.
type Operator struct {
	// Save requests a checkpoint after the current step. Stop requests an end as after an
	// interrupt. Both take the reason.
	Save func()
	Stop func(reason error)
}

// RunQuery names a run.
type RunQuery struct {
	ID string `path:"id" maxLength:"1024" doc:"of /v1/runs"`
}

type curveQuery struct {
	RunQuery
	From int `query:"from" default:"0" minimum:"0" doc:"steps from this one on"`
}

type logQuery struct {
	RunQuery
	Lines int `query:"lines" default:"100" minimum:"1" maximum:"1000" doc:"this many from the end"`
}

// logAnswer is the end of a log.
type logAnswer struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// Asked says what was requested of a run.
type Asked struct {
	Run   string `json:"run"`
	Asked string `json:"asked" enum:"save,stop"`
}

func (s *Server) registerRuns() {
	get(s, "list-runs", "/v1/runs", "List runs, the one of this process or those of the directory that is served: progress and figures, time, host, rank and directory, the last checkpoint, fallbacks and errors", func(context.Context, *nothing) ([]runs.Run, error) {
		return s.set.Runs.Runs(), nil
	})
	get(s, "get-curve", "/v1/runs/{id}/steps", "List steps of a run; of a long one not every step is kept", func(_ context.Context, in *curveQuery) ([]runs.Point, error) {
		points, ok := s.set.Runs.Curve(in.ID, in.From)
		return points, known(ok, in.ID)
	})
	get(s, "list-uses", "/v1/runs/{id}/impls", "List what each impl did in a run", func(_ context.Context, in *RunQuery) ([]runs.Use, error) {
		all, ok := s.set.Runs.Uses(in.ID)
		return all, known(ok, in.ID)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "get-log", Method: http.MethodGet, Path: "/v1/runs/{id}/log", Summary: "Read the end of the log of a run, as text",
		Responses: map[string]*huma.Response{"200": {Description: "The last lines.", Content: map[string]*huma.MediaType{"text/plain": {}}}},
		Errors:    []int{http.StatusTooManyRequests},
	}, func(_ context.Context, in *logQuery) (*logAnswer, error) {
		text, ok := s.set.Runs.Log(in.ID, in.Lines)
		return &logAnswer{"text/plain; charset=utf-8", text}, known(ok, in.ID)
	})
	s.ask("save", "Save a checkpoint after the current step", s.set.Operator.Save != nil, func(actor) { s.set.Operator.Save() })
	s.ask("stop", "Stop a run as an interrupt does: finish the current step, save, and end", s.set.Operator.Stop != nil, func(who actor) {
		s.set.Operator.Stop(fmt.Errorf("%s over the service", who.name))
	})
}

// ask adds an operation that requests something of the run of this process.
func (s *Server) ask(what, summary string, possible bool, carryOut func(actor)) {
	change(s, huma.Operation{
		OperationID: what + "-run", Method: http.MethodPost, Path: "/v1/runs/{id}/" + what, DefaultStatus: http.StatusAccepted,
		Summary: summary, Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(_ context.Context, who actor, in *RunQuery) (asked Asked, err error) {
		defer func() { s.report(who, what+" run", err, "run", in.ID) }()
		for _, r := range s.set.Runs.Runs() {
			if r.ID != in.ID {
				continue
			}
			if r.Ended != nil {
				return Asked{}, huma.Error409Conflict(fmt.Sprintf("run %q is %s; only one that is running can %s", in.ID, r.State, what))
			}
			if !possible {
				return Asked{}, huma.Error409Conflict(fmt.Sprintf("run %q is trained by another process; ask the service of that one", in.ID))
			}
			carryOut(who)
			return Asked{in.ID, what}, nil
		}
		return Asked{}, known(false, in.ID)
	})
}

// known returns an error if there is no such run.
func known(ok bool, id string) error {
	if ok {
		return nil
	}
	return huma.Error404NotFound(fmt.Sprintf("there is no run %q; /v1/runs lists the runs", id))
}
