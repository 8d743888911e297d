package command

import (
	"log/slog"

	"github.com/primus-fl/primus/runtime/runs"
	"github.com/primus-fl/primus/serve"
)

// serviceConfig is what a command decides about metrics, the HTTP service and the fleet.
type serviceConfig struct {
	log      *slog.Logger // of the program
	metrics  metricsConfig
	serve    serve.Config  // no address serves nothing
	trains   bool          // the service is ready once a run has begun
	archive  *runs.Archive // that the service shows; nil for the run of this process
	patches  servedPatches // that the service shows beside those of this program
	runLog   *runs.Tail    // of the run, for the service
	operator serve.Operator
	fleet    fleetSettings
}
