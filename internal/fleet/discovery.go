package fleet

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/primus-fl/primus/internal/httpserver"
)

// Lister lists a fleet; *Client is one.
type Lister interface {
	Snapshot(context.Context) (Snapshot, error)
}

var _ Lister = (*Client)(nil)

// TargetGroup is what Prometheus scrapes, as its HTTP service discovery wants it.
type TargetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Discovery returns the handler of /v1/sd: a group for each member that serves metrics, with the
// labels run (the experiment) and rank, __scheme__ for one over TLS, and __meta_primus_id,
// __meta_primus_backend, __meta_primus_host, __meta_primus_version and __meta_primus_world_size for
// relabelling. While the fleet cannot be listed, it answers 503, and Prometheus keeps its targets.
func Discovery(fleet Lister) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := fleet.Snapshot(r.Context())
		if err != nil {
			httpserver.WriteProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		text, err := json.Marshal(Targets(s.Members))
		if err != nil {
			httpserver.WriteProblem(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // an error means that the client is gone
	})
}

// Targets returns the groups of the members that serve metrics, in their order. It is never nil.
func Targets(members []Member) []TargetGroup {
	groups := []TargetGroup{}
	for _, m := range members {
		if m.Metrics == "" {
			continue
		}
		g := TargetGroup{
			Targets: []string{m.Metrics},
			Labels: map[string]string{
				"run": m.Experiment, "rank": strconv.Itoa(m.Rank),
				"__meta_primus_id": m.ID, "__meta_primus_backend": m.Backend, "__meta_primus_host": m.Host,
				"__meta_primus_version": m.Version, "__meta_primus_world_size": strconv.Itoa(m.WorldSize),
			},
		}
		if m.MetricsTLS {
			g.Labels["__scheme__"] = "https"
		}
		groups = append(groups, g)
	}
	return groups
}
