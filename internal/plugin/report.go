package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/vendors/abi"
)

// Report is what a plugin says about itself and whether its ops can run on this machine.
type Report struct {
	Name    string     `json:"name"`
	Version string     `json:"version"`
	ABI     string     `json:"abi"`
	Ops     []OpReport `json:"ops"`
	LeftOut []UnusedOp `json:"left_out"`
	// Control says which functions changed the floating-point environment, and how.
	Control []string `json:"floating_point,omitempty"`
	// Processes is the number of processes that the probe left running and that were ended.
	Processes int `json:"processes_left,omitempty"`
}

// OpReport is an op of a Report.
type OpReport struct {
	Op        string          `json:"op"`
	Impl      string          `json:"impl_id"`
	Kind      opregistry.Kind `json:"kind"`
	Vendor    string          `json:"vendor"`
	Priority  int             `json:"priority"` // as declared, which may be above MaxPriority
	Flags     []string        `json:"flags"`
	Devices   []string        `json:"devices,omitempty"` // types of those that it serves; none is the CPU
	Without   []string        `json:"without,omitempty"` // arguments that the op got after the plugin was compiled
	Misfit    string          `json:"misfit,omitempty"`  // why it cannot be called with the arguments that the op has
	Available bool            `json:"available"`
	Reason    string          `json:"reason"`          // why it is not available
	Trial     *Trial          `json:"trial,omitempty"` // nil if it was not tried
}

// flagNames are the words for the flags of an op.
var flagNames = []struct {
	bit  uint32
	name string
}{{abi.ThreadSafe, "thread_safe"}, {abi.Deterministic, "deterministic"}, {abi.SameThread, "same_thread"}, {abi.Async, "async"}, {abi.FlushesSubnormals, "flushes_subnormals"}}

// determinism returns what the flags of an op declare: a plugin does not know how many workers
// there are.
func determinism(flags uint32) opregistry.Determinism {
	if flags&abi.Deterministic != 0 {
		return opregistry.DeterminismOfClass
	}
	return opregistry.DeterminismUndeclared
}

// Determinism returns what the op declares about the bits of its results.
func (o *OpReport) Determinism() opregistry.Determinism {
	for _, f := range flagNames {
		if slices.Contains(o.Flags, f.name) && f.bit == abi.Deterministic {
			return opregistry.DeterminismOfClass
		}
	}
	return opregistry.DeterminismUndeclared
}

// flushes returns the dtypes for which the flags of an op declare that subnormal numbers count as
// 0: all or none.
func flushes(flags uint32) []tensor.DType {
	if flags&abi.FlushesSubnormals == 0 {
		return nil
	}
	return []tensor.DType{tensor.F64, tensor.F32, tensor.F16, tensor.BF16}
}

// FlushesSubnormals returns the dtypes for which the op declares that subnormal numbers count as 0.
func (o *OpReport) FlushesSubnormals() []tensor.DType {
	for _, f := range flagNames {
		if f.bit == abi.FlushesSubnormals && slices.Contains(o.Flags, f.name) {
			return flushes(f.bit)
		}
	}
	return nil
}

// Report asks every op whether it can run on this machine.
func (p *Plugin) Report() Report {
	r := Report{Name: p.Name(), Version: p.Version(), ABI: p.ABI(), Ops: []OpReport{}, LeftOut: p.Unused()}
	for _, o := range p.ops {
		op := OpReport{Op: o.op, Impl: o.implID, Kind: opregistry.KindVendor, Vendor: o.vendor, Priority: o.priority, Flags: []string{}, Available: true}
		for _, f := range flagNames {
			if o.flags&f.bit != 0 {
				op.Flags = append(op.Flags, f.name)
			}
		}
		for _, t := range o.devices {
			op.Devices = append(op.Devices, t.String())
		}
		op.Without = o.support.Without
		if o.misfit != nil {
			op.Misfit, op.Reason, op.Available = o.misfit.Error(), o.misfit.Error(), false
			r.Ops = append(r.Ops, op)
			continue
		}
		p.set.before("is_available of impl %q of op %q", o.implID, o.op)
		if err := o.available(); err != nil {
			op.Available, op.Reason = false, err.Error()
		}
		r.Ops = append(r.Ops, op)
	}
	r.Control = p.controls.list()
	return r
}

// Capped says which impls declare a priority above MaxPriority, one line each.
func (r *Report) Capped() []string {
	var lines []string
	for _, o := range r.Ops {
		if o.Priority > MaxPriority {
			lines = append(lines, fmt.Sprintf("the priority of impl %q of op %q is %d, which counts as %d: a policy that names %q prefers it", o.Impl, o.Op, o.Priority, MaxPriority, "vendor:"+o.Vendor))
		}
	}
	return lines
}

// Outdated says which impls were compiled for other arguments of their ops, one line each.
func (r *Report) Outdated() []string {
	var lines []string
	for _, o := range r.Ops {
		switch {
		case o.Misfit != "":
			lines = append(lines, fmt.Sprintf("impl %q of op %q is left out: %s", o.Impl, o.Op, o.Misfit))
		case len(o.Without) > 0:
			lines = append(lines, fmt.Sprintf("impl %q was compiled before op %q had %s: calls that give one of these arguments go to other impls", o.Impl, o.Op, strings.Join(o.Without, ", ")))
		}
	}
	return lines
}

// Availability returns why an impl cannot run on this machine, nil when it can.
func (r *Report) Availability(op, id string) error {
	for _, o := range r.Ops {
		switch {
		case o.Op != op || o.Impl != id:
		case o.Available:
			return nil
		default:
			return errors.New(o.Reason)
		}
	}
	return errors.New("its probe did not list it")
}
