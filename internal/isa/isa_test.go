package isa_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/isa"
)

func choose(t *testing.T, s isa.Settings) isa.Choice {
	t.Helper()
	c, err := isa.Choose(s)
	require.NoError(t, err)
	return c
}

// class returns the class of this CPU under a choice.
func class(c isa.Choice) string {
	defer c.Apply()()
	return cpufeat.Class(true)
}

func TestANamedSetLeavesOutWhatIsBeyond(t *testing.T) {
	before := cpufeat.Class(true)
	for _, name := range isa.Names()[1:] {
		got := class(choose(t, isa.Settings{Want: " " + strings.ToUpper(name)}))
		switch {
		case name == "generic":
			assert.NotContains(t, got, "+")
		default:
			assert.True(t, strings.HasSuffix(got, "+"+name), "%s gives %s", name, got)
		}
		assert.True(t, strings.HasPrefix(before, got), "%s gives %s, a part of %s", name, got, before)
		assert.Equal(t, before, cpufeat.Class(true), "after restore")
	}
}

func TestASetThatTheCPULacksIsRefused(t *testing.T) {
	defer cpufeat.Disable(cpufeat.BF16)()
	defer cpufeat.Disable(cpufeat.AVX512)()
	for _, want := range []string{"avx512", "avx512_bf16", "avx3", "neon2"} {
		_, err := isa.Choose(isa.Settings{Want: want})
		require.ErrorContains(t, err, "environment TE_FL_ISA: given \""+want+"\", want auto, generic")
		assert.ErrorContains(t, err, "on this CPU")
	}
}

func needBF16(t *testing.T) {
	if !cpufeat.Has(cpufeat.BF16) {
		t.Skip("this CPU has no instructions for bfloat16")
	}
}

// Whatever a measurement says, one of two choices follows, and the class that a checkpoint stores
// tells them apart.
func TestMeasurementsDecideProductsOfBF16(t *testing.T) {
	needBF16(t)
	zero := 0.0
	for _, tt := range []struct {
		rate  float64
		pairs bool
	}{{1.84, true}, {1.01, true}, {1, false}, {0.49, false}, {0, false}, {-3, false}, {1e9, false}, {1 / zero, false}, {zero / zero, false}} {
		c := choose(t, isa.Settings{Rate: func() float64 { return tt.rate }})
		assert.Equal(t, tt.pairs, strings.HasSuffix(class(c), "+avx512_bf16"), "%v: %v", tt.rate, c)
	}
	c := choose(t, isa.Settings{Rate: func() float64 { return 0.49 }})
	assert.Equal(t, "avx512 (measured: products of bf16 are 0.49 times as fast as those of f32)", c.String())
}

// Deterministic runs do not depend on a measurement.
func TestAFixedChoiceMeasuresNothing(t *testing.T) {
	needBF16(t)
	for _, rate := range []float64{0.1, 9} {
		c := choose(t, isa.Settings{Fixed: true, Rate: func() float64 { t.Error("measured"); return rate }})
		assert.Equal(t, choose(t, isa.Settings{Fixed: true}), c)
		assert.Equal(t, "deterministic_mode: by the model of the CPU", c.From)
	}
}

func TestMeasurementsAreKept(t *testing.T) {
	needBF16(t)
	file := filepath.Join(t.TempDir(), "primus", "isa.json")
	calls := 0
	s := isa.Settings{Cache: file, Rate: func() float64 { calls++; return 0.5 }}
	assert.Contains(t, choose(t, s).From, "kept in "+file)
	assert.Contains(t, choose(t, s).From, "measured before, "+file)
	assert.Equal(t, 1, calls)

	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"no JSON": "rate: 2", "empty": "", "a list": "[]", "another CPU": strings.Replace(string(good), `"cpu":"`, `"cpu":"Other `, 1),
		"another microcode": strings.Replace(string(good), `"microcode":"`, `"microcode":"9`, 1), "a rate out of bounds": strings.Replace(string(good), "0.5", "5e9", 1),
		"no rate": strings.Replace(string(good), "bf16_rate", "rate", 1), "endless": strings.Repeat(" ", 1<<15) + string(good),
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		calls = 0
		assert.Equal(t, "avx512", choose(t, s).Name, name)
		assert.Equal(t, 1, calls, "%s is measured again", name)
	}
	s.Cache = filepath.Join(file, "below", "a", "file")
	assert.Contains(t, choose(t, s).From, "measured, and not kept: ")
}
