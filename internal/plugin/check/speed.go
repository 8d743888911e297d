package check

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

const (
	// minMeasured is the shortest call that says something about a kernel; most of the time of a
	// shorter one is the overhead of the call.
	minMeasured    = 300 * time.Microsecond
	maxMeasured    = 256 << 20 // bytes of operands
	measureSamples = 50
	measureLimit   = 250 * time.Millisecond // of each impl
)

// Speed says how long a call takes, in microseconds.
type Speed struct {
	Case  string  `json:"case"`
	Bytes int     `json:"bytes"` // of all operands
	Impl  float64 `json:"impl_us"`

	// Baseline is the impl that is measured beside it, and BaselineTime how long that one takes. They
	// are "" and 0 when it declines the case.
	Baseline     string  `json:"baseline,omitempty"`
	BaselineTime float64 `json:"baseline_us,omitempty"`
}

// measure calls the op and the baseline in turn and keeps the shortest time of each, then those at
// the sizes of models.
func (c *checker) measure() error {
	pool := parallel.New(goruntime.GOMAXPROCS(0))
	defer pool.Close()
	exec := opregistry.NewExec(pool, device.DefaultStream)
	reg := opregistry.NewRegistry()
	baseline, source := c.Baseline, c.source
	if c.backend != nil {
		baseline, source = c.DeviceBaseline, c.plugin.Source()
	}
	if err := errors.Join(reg.Register(baseline), reg.Register(source)); err != nil {
		return err
	}
	for _, d := range c.found.servedDTypes() {
		c.step("time in %v", d)
		if err := c.repeat(d, exec); err != nil {
			return err
		}
		found, err := c.measureGrowing(d, reg.Snapshot(), exec)
		if err != nil {
			return err
		}
		if found == nil && c.backend == nil { // the op has no cases of any size, or they are not what the impl serves
			if found, err = c.measureLargest(d, exec); err != nil {
				return err
			}
		}
		if found != nil {
			c.found.Speed = append(c.found.Speed, *found)
		}
	}
	return c.sizes(reg.Snapshot(), exec)
}

// repeat reports an op that keeps the results of calls with equal operands.
func (c *checker) repeat(d tensor.DType, exec *opregistry.Exec) error {
	work, err := opscases.All().Largest(d, c.subject)
	if work == nil || err != nil {
		return err
	}
	kept, err := work[0].Kept(exec)
	if kept != "" {
		c.found.Faults = append(c.found.Faults, fmt.Sprintf("case %s: %s", work[0].Case, kept))
	}
	return err
}

// measureGrowing measures cases of a growing size until a call takes long enough. It returns nil
// when the impl declines them.
func (c *checker) measureGrowing(d tensor.DType, snap *opregistry.Snapshot, exec *opregistry.Exec) (*Speed, error) {
	var found *Speed
	for size := 256; ; size *= 2 {
		next, err := c.measureSize(d, size, snap, exec)
		if err != nil || next == nil {
			return found, err
		}
		found = next
		fastest := found.Impl
		if found.Baseline != "" {
			fastest = min(fastest, found.BaselineTime)
		}
		if fastest >= 1e6*minMeasured.Seconds() || 4*found.Bytes > maxMeasured {
			return found, nil
		}
	}
}

// measureSize measures a case of one size.
func (c *checker) measureSize(d tensor.DType, size int, snap *opregistry.Snapshot, exec *opregistry.Exec) (found *Speed, err error) {
	var memory device.Backend = cpu.New()
	baseline := c.Baseline.Name
	if c.backend != nil {
		memory, baseline = c.backend, c.DeviceBaseline.Name
	}
	maker := opbench.NewMaker(memory, d)
	defer func() { err = errors.Join(err, maker.Close()) }()
	work, ok, err := sizedCase(maker, c.name.Op, size)
	if !ok || err != nil {
		return nil, err
	}
	op, _ := snap.Index(c.name.Op)
	impls := slices.DeleteFunc(slices.Clone(snap.Impls(op)), func(e opregistry.Entry) bool { return e.ID != c.name.ID && e.Source != baseline })
	found = &Speed{Case: fmt.Sprintf("%v/%s", d, work.Shape), Bytes: int(work.Bytes)}
	// This is a child process, which its parent ends when it is to end.
	for _, r := range opbench.Measure(context.Background(), work, snap, impls, exec, opbench.Settings{Repeat: measureSamples, Budget: measureLimit}) {
		switch {
		case len(r.Samples) == 0 && r.Impl == c.name.ID:
			return nil, nil
		case len(r.Samples) == 0:
		case r.Impl == c.name.ID:
			found.Impl = 1e6 * slices.Min(r.Samples).Seconds()
		default:
			found.Baseline, found.BaselineTime = r.Impl, 1e6*slices.Min(r.Samples).Seconds()
		}
	}
	return found, nil
}

// sizedCase returns a case of an op whose work grows with size; ok is false for an op that has
// none.
func sizedCase(m *opbench.Maker, op string, size int) (work opbench.Case, ok bool, err error) {
	switch {
	case op == gemm.GenericGemm.Name():
		work, err = m.GEMM(size, size, size, opbench.Forward)
	case op == gemm.TEGeneralGroupedGemm.Name():
		work, err = m.GroupedGEMM(4, size, size, size, opbench.Forward)
	case op == attention.FusedAttnFwd.Name():
		work, _, err = m.Attention(1, size, 8, 8, 64, attention.CausalMask, nil)
	case op == attention.FusedAttnBwd.Name():
		_, work, err = m.Attention(1, size, 8, 8, 64, attention.CausalMask, nil)
	case slices.Contains(opbench.Ops(), op):
		work, err = m.Op(op, size, 512)
	default:
		return work, false, nil
	}
	return work, true, err
}

// measureLargest measures the largest case of the conformance kit.
func (c *checker) measureLargest(d tensor.DType, exec *opregistry.Exec) (*Speed, error) {
	subjects := []opstest.Subject{c.subject}
	rival, ok := implFor(c.Baseline, c.name.Op)
	if ok {
		subjects = append(subjects, SubjectOf(c.Baseline, rival))
	}
	work, err := opscases.All().Largest(d, subjects...)
	if work == nil && err == nil {
		work, err = opscases.All().Largest(d, c.subject) // the baseline declines this dtype
	}
	if work == nil || err != nil {
		return nil, err
	}
	best := make([]time.Duration, len(work))
	end := time.Now().Add(measureLimit)
	for n := 0; n < 4*measureSamples && time.Now().Before(end); n++ {
		for k, w := range work {
			took, err := w.Run(exec)
			if err != nil {
				return nil, err
			}
			if n == 0 || took < best[k] {
				best[k] = took
			}
		}
	}
	found := &Speed{Case: work[0].Case, Bytes: work[0].Bytes, Impl: best[0].Seconds() * 1e6}
	if len(best) > 1 {
		found.Baseline, found.BaselineTime = rival.ID, best[1].Seconds()*1e6
	}
	return found, nil
}
