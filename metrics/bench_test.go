package metrics_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// BenchmarkDuration is what an observed duration costs; one call in seven is observed.
func BenchmarkDuration(b *testing.B) {
	d, err := metrics.NewDispatch(prometheus.NewRegistry())
	require.NoError(b, err)
	tell := d.Durations("generic_gemm", opmanager.ImplInfo{ID: "default.flagos", Kind: opregistry.KindFlagos})
	d.RunStarted(backend.Run{FirstStep: 1})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tell(time.Duration(i%1000) * time.Microsecond)
	}
}

// BenchmarkCall is a call of a small op, without and with durations observed.
func BenchmarkCall(b *testing.B) {
	d, err := metrics.NewDispatch(prometheus.NewRegistry())
	require.NoError(b, err)
	d.RunStarted(backend.Run{FirstStep: 1})
	for _, bb := range []struct {
		name string
		set  opmanager.Settings
	}{
		{"counted", opmanager.Settings{}},
		{"observed", opmanager.Settings{Listeners: []opmanager.Listener{d}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			impls := opregistry.NewRegistry()
			require.NoError(b, impls.Register(reference.Source()))
			m := opmanager.New(impls, oppolicy.Default(), bb.set)
			defer m.Close()
			add := opmanager.MustBind(m, norm.ResidualAdd)
			x, err := tensor.FromSlice([]float32{1})
			require.NoError(b, err)
			y, err := tensor.FromSlice([]float32{1})
			require.NoError(b, err)
			args := norm.ResidualAddArgs{A: x, B: x, Output: y}
			b.ReportAllocs()
			for b.Loop() {
				if err := add.Call(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
