package metrics_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// Calls of a manager are read when the registry is scraped.
func Example() {
	reg := prometheus.NewRegistry()
	dispatch, err := metrics.NewDispatch(reg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dispatch.Close()
	registry := opregistry.NewRegistry()
	if err := registry.Register(reference.Source()); err != nil {
		fmt.Println(err)
		return
	}
	manager := opmanager.New(registry, oppolicy.Default(), opmanager.Settings{Listeners: []opmanager.Listener{dispatch}})
	defer manager.Close()
	dispatch.Watch(manager)

	x, _ := tensor.FromSlice([]float32{1, 2, 3})
	if err := opmanager.MustBind(manager, norm.ResidualAdd).Call(norm.ResidualAddArgs{A: x, B: x, Output: x}); err != nil {
		fmt.Println(err)
		return
	}
	families, err := reg.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := 0.0
	for _, family := range families {
		if family.GetName() == "primus_op_calls_total" {
			for _, m := range family.GetMetric() {
				calls += m.GetCounter().GetValue()
			}
		}
	}
	fmt.Println("primus_op_calls_total", calls)
	// Output: primus_op_calls_total 1
}
