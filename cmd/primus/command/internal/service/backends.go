package service

import (
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/runtime/backend"
)

// BackendRow is one backend of `primus backends list`.
type BackendRow struct {
	Framework   string   `json:"framework"`
	Description string   `json:"description"`
	Stages      []string `json:"stages"`
	Trains      bool     `json:"trains"` // always: every backend does
	Launches    bool     `json:"-"`      // it trains in processes of its own
	Patches     int      `json:"patches"`
	Version     string   `json:"version"` // empty when it is unknown
	Path        string   `json:"path"`    // of the source tree; empty when it is compiled in or not found
	Problem     string   `json:"problem"` // why it was not found, or why the version is unknown
}

// ListBackends returns the version and the source tree that each backend finds.
func ListBackends(p graph.PlanParams) ([]BackendRow, error) {
	rows := []BackendRow{}
	for _, name := range p.Backends.Names() {
		f, err := p.Backends.Get(name)
		if err != nil {
			return nil, err
		}
		adapter := f.New()
		tc := &backend.TrainContext{
			Framework: name, Adapter: adapter, Environ: backend.ProcessEnviron().Overlay(), Log: slog.New(slog.DiscardHandler),
		}
		row := BackendRow{Framework: name, Description: f.Description, Stages: adapter.Stages(), Trains: true, Launches: f.Launches}
		for _, patch := range p.Patches.All() {
			if patch.Backend == name || patch.Backend == "" {
				row.Patches++
			}
		}
		if tc.Paths, err = adapter.SetupPath("", tc); err != nil {
			row.Problem = err.Error()
		} else if row.Version, err = adapter.DetectVersion(tc); err != nil {
			row.Problem = err.Error()
		}
		row.Path = tc.Paths.Dir
		rows = append(rows, row)
	}
	return rows, nil
}
