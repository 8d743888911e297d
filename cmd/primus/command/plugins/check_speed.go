package plugins

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/benchmarks/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/opstest"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

const (
	// shortestMeasured is what a call has to take to say something about a kernel: less is mostly the way to it.
	shortestMeasured = 300 * time.Microsecond
	mostMeasured     = 256 << 20 // bytes of operands
	measureSamples   = 50
	measureLimit     = time.Second // of each impl
)

// speedCheck says how long a call takes, in microseconds.
type speedCheck struct {
	Case   string  `json:"case"`
	Bytes  int     `json:"bytes"` // of all operands
	Impl   float64 `json:"impl_us"`
	Flagos float64 `json:"flagos_us,omitempty"`
}

// measure calls the op in turns with flagos, and keeps the shortest time of each.
func (c *opChecker) measure() error {
	pool := parallel.New(goruntime.GOMAXPROCS(0))
	defer pool.Close()
	exec := opregistry.NewExec(pool, device.DefaultStream)
	reg := opregistry.NewRegistry()
	if err := errors.Join(reg.Register(flagos.Source()), reg.Register(c.source)); err != nil {
		return err
	}
	for _, d := range c.found.servedDTypes() {
		c.step("time in %v", d)
		found, err := c.measureGrowing(d, reg.Snapshot(), exec)
		if err != nil {
			return err
		}
		if found == nil { // the op has no cases of any size, or they are not what the impl serves
			if found, err = c.measureLargest(d, exec); err != nil {
				return err
			}
		}
		if found != nil {
			c.found.Speed = append(c.found.Speed, *found)
		}
	}
	return nil
}

// measureGrowing measures cases of a growing size until a call takes long enough. It returns nil when the impl declines
// them.
func (c *opChecker) measureGrowing(d tensor.DType, snap *opregistry.Snapshot, exec *opregistry.Exec) (*speedCheck, error) {
	var found *speedCheck
	for size := 256; ; size *= 2 {
		next, err := c.measureSize(d, size, snap, exec)
		if err != nil || next == nil {
			return found, err
		}
		found = next
		fastest := found.Impl
		if found.Flagos > 0 {
			fastest = min(fastest, found.Flagos)
		}
		if fastest >= 1e6*shortestMeasured.Seconds() || 4*found.Bytes > mostMeasured {
			return found, nil
		}
	}
}

// measureSize measures a case of one size.
func (c *opChecker) measureSize(d tensor.DType, size int, snap *opregistry.Snapshot, exec *opregistry.Exec) (found *speedCheck, err error) {
	maker := opbench.NewMaker(cpu.New(), d)
	defer func() { err = errors.Join(err, maker.Close()) }()
	work, ok, err := sizedCase(maker, c.name.Op, size)
	if !ok || err != nil {
		return nil, err
	}
	op, _ := snap.Index(c.name.Op)
	impls := slices.DeleteFunc(slices.Clone(snap.Impls(op)), func(e opregistry.Entry) bool { return e.ID != c.name.ID && e.ID != flagos.ID })
	found = &speedCheck{Case: fmt.Sprintf("%v/%s", d, work.Shape), Bytes: int(work.Bytes)}
	// This is a child process, which its parent ends when it is to end.
	for _, r := range opbench.Measure(context.Background(), work, snap, impls, exec, opbench.Settings{Repeat: measureSamples, Budget: measureLimit}) {
		switch {
		case len(r.Samples) == 0 && r.Impl == c.name.ID:
			return nil, nil
		case len(r.Samples) == 0:
		case r.Impl == c.name.ID:
			found.Impl = 1e6 * slices.Min(r.Samples).Seconds()
		default:
			found.Flagos = 1e6 * slices.Min(r.Samples).Seconds()
		}
	}
	return found, nil
}

// sizedCase returns a case of an op whose work grows with size; ok is false for an op that has none.
func sizedCase(m *opbench.Maker, op string, size int) (work opbench.Case, ok bool, err error) {
	switch {
	case op == gemm.GenericGemm.Name():
		work, err = m.GEMM(size, size, size, opbench.Forward)
	case op == gemm.TEGeneralGroupedGemm.Name():
		work, err = m.GroupedGEMM(4, size, size, size, opbench.Forward)
	case op == attention.FusedAttnFwd.Name():
		work, _, err = m.Attention(1, size, 8, 8, 64, attention.CausalMask)
	case op == attention.FusedAttnBwd.Name():
		_, work, err = m.Attention(1, size, 8, 8, 64, attention.CausalMask)
	case slices.Contains(opbench.Ops(), op):
		work, err = m.Op(op, size, 512)
	default:
		return work, false, nil
	}
	return work, true, err
}

// measureLargest measures the largest case of the conformance kit.
func (c *opChecker) measureLargest(d tensor.DType, exec *opregistry.Exec) (*speedCheck, error) {
	subjects := []opstest.Subject{c.subject}
	if rival, ok := implOf(flagos.Source(), implName{c.name.Op, flagos.ID}); ok {
		subjects = append(subjects, subjectOf(flagos.Source(), rival))
	}
	work, err := opstest.Largest(d, subjects...)
	if work == nil && err == nil {
		work, err = opstest.Largest(d, c.subject) // flagos declines this dtype
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
	found := &speedCheck{Case: work[0].Case, Bytes: work[0].Bytes, Impl: best[0].Seconds() * 1e6}
	if len(best) > 1 {
		found.Flagos = best[1].Seconds() * 1e6
	}
	return found, nil
}
