package loader_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/vendors/loader"
)

func BenchmarkCall(b *testing.B) {
	lib, err := loader.Open(compile(b, "fixture.c"))
	require.NoError(b, err)

	b.Run("Call/13", func(b *testing.B) {
		sum, err := lib.Symbol("fixture_sum13")
		require.NoError(b, err)
		args := make([]uintptr, 13)
		b.ReportAllocs()
		for b.Loop() {
			loader.Call(sum, args...)
		}
	})
	b.Run("Guard/2", func(b *testing.B) {
		sum := symbol(b, lib, "fixture_sum13")
		var g loader.Guard
		b.ReportAllocs()
		for b.Loop() {
			g.Call(sum, 0, 0)
		}
	})
	b.Run("Call/2", func(b *testing.B) {
		sum := symbol(b, lib, "fixture_sum13")
		args := make([]uintptr, 2)
		b.ReportAllocs()
		for b.Loop() {
			loader.Call(sum, args...)
		}
	})
	b.Run("Bind/6", func(b *testing.B) {
		var mixed func(c byte, n int64, alpha float32, x *float32, beta float32, gamma float64) float64
		require.NoError(b, lib.Bind(&mixed, "fixture_mixed"))
		x := make([]float32, 2)
		b.ReportAllocs()
		for b.Loop() {
			mixed(1, 2, 3, &x[0], 4, 5)
		}
	})
}
