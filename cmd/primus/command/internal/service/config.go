// Package service adds to the graph what a process offers to others while it runs: metrics, the
// HTTP service and its membership in a fleet, each if the flags ask for it.
package service

import (
	"log/slog"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/internal/serve/openai"
)

// Config is what a command decides about metrics, the HTTP service and the fleet.
type Config struct {
	Log      *slog.Logger // of the program
	Metrics  MetricsConfig
	Serve    serve.Config  // no address serves nothing
	Trains   bool          // the service is ready once a run has begun
	Archive  *runs.Archive // that the service shows; nil for the run of this process
	Patches  ServedPatches // that the service shows beside those of this program
	RunLog   *runs.Tail    // of the run, for the service
	Operator serve.Operator
	Model    *openai.Handler // that the service serves; nil for none
	Fleet    fleetSettings
}
