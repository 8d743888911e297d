package plugin

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
)

// Trial is the result of calls of an op with small operands.
type Trial struct {
	Served   int    `json:"served"`
	Declined int    `json:"declined"`
	Failure  string `json:"failure,omitempty"` // the first call that failed, and how
	Stray    string `json:"stray,omitempty"`   // the first call that wrote to memory that it may not write, and where
}

// Tryer calls an impl of a source in a few cases, and progress with the name of each
// before it begins.
type Tryer func(src opregistry.Source, impl opregistry.Impl, progress func(name string)) (Trial, error)

// Try calls the ops of the plugin that can run on this machine and adds the results to its report.
// No other calls may be made at the same time.
func (p *Plugin) Try(try Tryer, r *Report) error {
	defer func() { p.trying, r.Control = "", p.controls.list() }()
	for i := range r.Ops {
		op := &r.Ops[i]
		if !op.Available {
			continue
		}
		found, err := try(p.Source(), p.impls[i], func(name string) { p.trying = name })
		if err != nil {
			return err
		}
		if p.stray != "" {
			found.Stray, p.stray = p.stray, ""
		}
		op.Trial = &found
	}
	return nil
}

// announce says which function of the op runs next in a trial.
func (o *pluginOp) announce(function string) {
	if p := o.plugin; p.trying != "" {
		p.set.before("%s of impl %q of op %q, case %s", function, o.implID, o.op, p.trying)
	}
}

// watch holds the operands of a call in a trial, with their content before the call.
type watch struct {
	operands []opregistry.Operand
	before   [][]byte
}

// watch copies the operands of a call in a trial; it returns nil for every other call.
func (o *pluginOp) watch(args any) *watch {
	if o.plugin.trying == "" {
		return nil
	}
	w := &watch{operands: opregistry.CallOf(o.handle, args).Operands()}
	for _, operand := range w.operands {
		w.before = append(w.before, bytes.Clone(memory(operand)))
	}
	return w
}

// check records the first write of a function that may only read.
func (w *watch) check(p *Plugin, function string) {
	if w == nil || p.stray != "" {
		return
	}
	for i, operand := range w.operands {
		if !bytes.Equal(w.before[i], memory(operand)) {
			p.stray = fmt.Sprintf("case %s: %s wrote to operand %q; it may only read arguments", p.trying, function, operand.Name)
			return
		}
	}
}

// memory returns all bytes between the first and the last element of an operand. Those in memory of
// a device are a copy, which is empty if the device fails; the call fails then, too.
func memory(o opregistry.Operand) []byte {
	if o.Tensor == nil {
		return nil
	}
	lo, hi := o.Tensor.ByteRange()
	if o.Tensor.Place() == device.PlaceHost {
		return unsafe.Slice((*byte)(o.Tensor.Pointer()), hi-lo)
	}
	copier, ok := device.As[device.Copier](o.Tensor.Storage().Backend())
	if !ok {
		return nil
	}
	content := make([]byte, hi-lo)
	if err := copier.CopyOut(content, o.Tensor.Pointer(), device.DefaultStream); err != nil {
		return nil
	}
	return content
}
