package opbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/stats"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Figures are what one impl reached in one case.
type Figures struct {
	Op        string          `json:"op"`
	Shape     string          `json:"shape"`
	DType     tensor.DType    `json:"dtype"`
	Threads   int             `json:"threads"`
	Impl      string          `json:"impl"`
	Kind      opregistry.Kind `json:"kind"`
	Time      *stats.Spread   `json:"time_ms"` // nil when the impl did not run
	GFLOPS    float64         `json:"gflops"`  // 0 where memory is the bound
	GBPerS    float64         `json:"gb_per_s"`
	Bound     Bound           `json:"bound"`
	PeakShare float64         `json:"peak_share"` // of what the machine reaches at the bound; 0 when that is not known
	Reason    string          `json:"reason,omitempty"`
}

// Build makes cases with operands of a Maker.
type Build func(*Maker) ([]Case, error)

// Bench measures cases on impls of a registry and relates them to what the machine reaches. A Bench
// belongs to one goroutine.
type Bench struct {
	Device device.Backend
	Exec   *opregistry.Exec
	Snap   *opregistry.Snapshot
	Impls  []string // the ids of the impls to measure; nil is all
	Settings

	peaks map[Bound]float64
}

// slowFLOPs is the size of a call from which on references, which take a second or more, are left
// out.
const slowFLOPs = 2e9

// apart parts a list into what passes a test and the rest.
func apart[E any](list []E, test func(E) bool) (passed, rest []E) {
	for _, e := range list {
		if test(e) {
			passed = append(passed, e)
		} else {
			rest = append(rest, e)
		}
	}
	return passed, rest
}

// CheckImpls returns an error if Impls names one that no op has.
func (b *Bench) CheckImpls() error {
	var known []string
	for i := range b.Snap.Ops() {
		for _, e := range b.Snap.Impls(i) {
			if !slices.Contains(known, e.ID) {
				known = append(known, e.ID)
			}
		}
	}
	slices.Sort(known)
	for _, id := range b.Impls {
		if !slices.Contains(known, id) {
			return fmt.Errorf("given %q, want %s%s", id, strings.Join(known, ", "), suggest.Hint(id, known))
		}
	}
	return nil
}

// Measure builds cases with operands of a dtype and measures them, with their impls ordered by id.
func (b *Bench) Measure(ctx context.Context, d tensor.DType, build Build) (all []Figures, err error) {
	maker := NewMaker(b.Device, d)
	defer func() { err = errors.Join(err, maker.Close()) }()
	cases, err := build(maker)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		op, _ := b.Snap.Index(c.Op.Name())
		impls := slices.DeleteFunc(slices.Clone(b.Snap.Impls(op)), func(e opregistry.Entry) bool {
			return len(b.Impls) > 0 && !slices.Contains(b.Impls, e.ID)
		})
		var slow []opregistry.Entry
		if c.FLOPs > slowFLOPs && len(b.Impls) == 0 {
			impls, slow = apart(impls, func(e opregistry.Entry) bool { return e.Kind != opregistry.KindReference })
		}
		slices.SortStableFunc(impls, func(x, y opregistry.Entry) int { return cmp.Compare(x.ID, y.ID) })
		for _, r := range Measure(ctx, c, b.Snap, impls, b.Exec, b.Settings) {
			all = append(all, b.figures(c, d, r))
		}
		for _, e := range slow {
			all = append(all, b.figures(c, d, Result{Impl: e.ID, Kind: e.Kind, Reason: "not measured, because it is slow and the call is large; naming it measures it"}))
		}
	}
	return all, ctx.Err()
}

func (b *Bench) figures(c Case, d tensor.DType, r Result) Figures {
	row := Figures{
		Op: c.Op.Name(), Shape: c.Shape, DType: d, Threads: b.Exec.Pool().Workers(), Impl: r.Impl, Kind: r.Kind,
		Bound: c.Bound, Reason: r.Reason,
	}
	if len(r.Samples) == 0 {
		return row
	}
	s := stats.SpreadOf(r.Samples)
	row.Time = &s
	row.GFLOPS, row.GBPerS = c.FLOPs/s.Median/1e6, c.Bytes/s.Median/1e6
	switch c.Bound {
	case Compute:
		row.PeakShare = stats.Share(1e9*row.GFLOPS, b.peak(c.Bound))
	case Memory:
		row.PeakShare = stats.Share(1e9*row.GBPerS, b.peak(c.Bound))
	}
	return row
}

// peakMeasurements is how often the peak of computing is measured; the best counts.
const peakMeasurements = 10

// peak returns what the machine reaches at a bound, measured when it is first asked for.
func (b *Bench) peak(bound Bound) float64 {
	if b.peaks == nil {
		b.peaks = map[Bound]float64{}
	}
	if _, ok := b.peaks[bound]; !ok {
		if bound == Compute {
			for range peakMeasurements {
				b.peaks[bound] = max(b.peaks[bound], PeakFLOPS(b.Exec.Pool()))
			}
		} else {
			b.peaks[bound] = PeakBandwidth(b.Exec.Pool())
		}
	}
	return b.peaks[bound]
}
