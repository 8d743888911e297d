//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/opregistry"
)

// The faults of a call.
const (
	faultError   = "error"   // fails before it writes
	faultPanic   = "panic"   // panics before it writes
	faultDecline = "decline" // declines the call
	faultSlow    = "slow"    // takes 20 ms more
	faultHalf    = "half"    // fails after it has written garbage
	faultNaN     = "nan"     // returns NaN
	faultWrong   = "wrong"   // returns numbers that are too large by half
)

// faultVariable holds a fault plan as JSON, for processes of the role primus.
const faultVariable = "CHAOS_FAULTS"

// plan says which calls of the vendor chaos have a fault, and which.
type plan struct {
	Calls []int64  `json:"calls"` // counted from 1 over all ops
	Kinds []string `json:"kinds"` // of each call
	Wrong int64    `json:"wrong"` // the first of the calls that are all wrong; 0 for none
	Log   string   `json:"log"`   // receives a line for each fault: kind and op
}

// newSource returns the vendor chaos: every impl of flagos under its name, with the faults of a
// plan.
func newSource(text string) (opregistry.Source, error) {
	source := opregistry.Source{Name: "chaos"}
	var p plan
	if text != "" {
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return source, fmt.Errorf("%s: %w", faultVariable, err)
		}
	}
	var calls atomic.Int64
	for _, impl := range flagos.Source().Impls {
		impl.ID, impl.Kind, impl.Vendor, impl.Priority = "vendor.chaos", opregistry.KindVendor, "chaos", 100
		impl.Run = p.wrap(impl, &calls)
		source.Impls = append(source.Impls, impl)
	}
	return source, nil
}

// wrap returns the Run of an impl with the faults of the plan.
func (p plan) wrap(impl opregistry.Impl, calls *atomic.Int64) any {
	run := reflect.ValueOf(impl.Run)
	result := func(err error) []reflect.Value { return []reflect.Value{reflect.ValueOf(&err).Elem()} }
	return reflect.MakeFunc(run.Type(), func(args []reflect.Value) []reflect.Value {
		n := calls.Add(1)
		i := slices.Index(p.Calls, n)
		kind := faultWrong
		if i >= 0 {
			kind = p.Kinds[i]
		} else if p.Wrong == 0 || n < p.Wrong {
			return run.Call(args)
		}
		operands := opregistry.CallOf(impl.Op, args[1].Interface()).Operands()
		p.record(kind, impl.Op.Name())
		switch kind {
		case faultError:
			return result(opregistry.Untouched(errors.New("chaos: the device is lost")))
		case faultPanic:
			panic("chaos: the driver panics")
		case faultDecline:
			return result(opregistry.Unsupported("chaos: out of luck"))
		case faultSlow:
			time.Sleep(20 * time.Millisecond)
			return run.Call(args)
		case faultHalf:
			spoil(operands, func(float64) float64 { return 1e9 })
			return result(errors.New("chaos: the device is lost half way"))
		case faultNaN:
			out := run.Call(args)
			spoil(operands, func(float64) float64 { return math.NaN() })
			return out
		default:
			out := run.Call(args)
			spoil(operands, func(v float64) float64 { return 1.5*v + 1 })
			return out
		}
	}).Interface()
}

// spoil changes the numbers of all operands that an op writes.
func spoil(operands []opregistry.Operand, change func(float64) float64) {
	for _, o := range operands {
		if o.Tensor == nil || o.Access == opregistry.AccessRead || !o.Tensor.DType().IsFloat() {
			continue
		}
		values := o.Tensor.Float64s()
		for i, v := range values {
			values[i] = change(v)
		}
		if err := o.Tensor.SetFloat64s(values); err != nil {
			panic(err)
		}
	}
}

// record appends a line to the log of the plan.
func (p plan) record(kind, op string) {
	file, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(file, kind, op)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		panic(fmt.Sprintf("chaos: the log of faults: %v", err))
	}
}
