package main

import (
	"runtime"
	"time"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// cheats are mistakes on purpose.
func cheats() []rule {
	return []rule{
		{name: "results are written after the call", dtype: tensor.F32, wrong: func(opregistry.Handle) func(call) error {
			return func(c call) error {
				clone, _ := c.Clone()
				go func() {
					time.Sleep(50 * time.Microsecond)
					_ = c.run(clone)
				}()
				return nil
			}
		}},
		{name: "results are zeros", dtype: tensor.F32, wrong: func(opregistry.Handle) func(call) error {
			return func(c call) error { return change(c, func(float64) float64 { return 0 }) }
		}},
		{name: "nothing is done", dtype: tensor.BF16, wrong: func(opregistry.Handle) func(call) error {
			return func(call) error { return nil }
		}},
	}
}

// yield lets other calls run, longer for longer results.
func yield(n int) {
	for range min(4+n/64, 64) {
		runtime.Gosched()
	}
}
