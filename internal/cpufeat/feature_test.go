package cpufeat_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/cpufeat"
)

func TestDisableHidesOneFeatureUntilRestored(t *testing.T) {
	for _, f := range cpufeat.Features() {
		before := cpufeat.Has(f)
		restore := cpufeat.Disable(f)
		assert.False(t, cpufeat.Has(f), "%v", f)
		inner := cpufeat.Disable(f)
		inner()
		assert.False(t, cpufeat.Has(f), "%v after a nested restore", f)
		restore()
		assert.Equal(t, before, cpufeat.Has(f), "%v", f)
	}
}

func TestClassNamesWhatKernelsMayUse(t *testing.T) {
	var restore []func()
	for _, f := range cpufeat.Features() {
		restore = append(restore, cpufeat.Disable(f))
	}
	assert.Equal(t, runtime.GOARCH, cpufeat.Class(true))
	for _, r := range restore {
		r()
	}
	for _, f := range cpufeat.Features() {
		assert.Equal(t, cpufeat.Has(f), strings.Contains(cpufeat.Class(true)+"+", "+"+f.String()+"+"))
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range cpufeat.Features() {
		assert.False(t, seen[f.String()], "%v", f)
		seen[f.String()] = true
	}
	assert.Equal(t, "feature(200)", cpufeat.Feature(200).String())
}

func TestFeaturesBelongToAnArchitecture(t *testing.T) {
	for _, f := range cpufeat.Features() {
		arch := "amd64"
		if f == cpufeat.NEON || f == cpufeat.NEONBF16 {
			arch = "arm64"
		}
		if runtime.GOARCH != arch {
			assert.False(t, cpufeat.Has(f), "%v", f)
		}
	}
	assert.Equal(t, runtime.GOARCH == "arm64", cpufeat.Has(cpufeat.NEON))
}
