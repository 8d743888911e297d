package preflight

import (
	"context"
	"os"
	"slices"
	"time"
)

// Settings say what to check.
type Settings struct {
	Groups  []Group // none means all
	Limits  Limits
	Machine Machine
	Place   Place

	// Product multiplies two square matrices of float32 of a size, and returns how long it took.
	// Without it no product is measured.
	Product func(ctx context.Context, size int) (time.Duration, error)
}

// Collect returns the report of this machine.
func Collect(ctx context.Context, s Settings) *Report {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	r := &Report{Rank: s.Place.Rank, World: s.Place.World, Host: host, Facts: map[string]string{}, Rates: map[string]float64{}}
	wanted := func(g Group) bool { return len(s.Groups) == 0 || slices.Contains(s.Groups, g) }
	if wanted(Host) {
		r.host(ctx, s.Machine, s.Limits)
	}
	if wanted(GPU) {
		r.gpus(ctx, s.Machine, s.Limits)
	}
	if wanted(Network) {
		r.network(s.Machine, s.Limits, s.Place)
	}
	if wanted(Speed) && s.Place.Local == 0 { // the ranks of a host would slow each other down
		r.speed(ctx, s)
	}
	r.Time = time.Now().UTC()
	return r
}
