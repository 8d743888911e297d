package cpufeat

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/klauspost/cpuid/v2"
)

// Feature is a group of instruction-set extensions.
type Feature uint8

// The features that kernels distinguish.
const (
	AVX2     Feature = iota // AVX2, FMA3 and F16C
	AVX512                  // AVX-512 F, BW, DQ and VL
	BF16                    // products of bfloat16 in vectors of AVX-512
	NEON                    // the vectors of arm64, which every such machine has
	NEONBF16                // products of bfloat16 in them
	end
)

var names = [end]string{"avx2", "avx512", "avx512_bf16", "neon", "neon_bf16"}

var needs = [end][]cpuid.FeatureID{
	AVX2:     {cpuid.AVX2, cpuid.FMA3, cpuid.F16C},
	AVX512:   {cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL},
	BF16:     {cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512BF16},
	NEON:     {cpuid.ASIMD},
	NEONBF16: {cpuid.ASIMD, cpuid.BF16},
}

var present = detect()

func detect() *[end]atomic.Bool {
	var found [end]atomic.Bool
	for f := range end {
		found[f].Store(cpuid.CPU.Supports(needs[f]...))
	}
	return &found
}

// Features returns all features in the order of their constants.
func Features() []Feature { return []Feature{AVX2, AVX512, BF16, NEON, NEONBF16} }

// Has reports whether kernels may use f on this machine.
func Has(f Feature) bool { return present[f].Load() }

// Disable makes Has(f) false until restore is called. Tests use it to run the kernels of CPUs with
// fewer features; other code must not.
func Disable(f Feature) (restore func()) {
	was := present[f].Swap(false)
	return func() { present[f].Store(was) }
}

// String returns the name of the feature in lower case.
func (f Feature) String() string {
	if f >= end {
		return fmt.Sprintf("feature(%d)", uint8(f))
	}
	return names[f]
}

// Class names what decides which kernels run, and therefore the bits of results: the architecture
// and the features that kernels distinguish and may use here. BF16 and NEONBF16 are among them
// only with narrow, which is for programs that compute with numbers of 16 bits.
func Class(narrow bool) string {
	class := runtime.GOARCH
	for _, f := range Features() {
		if Has(f) && (narrow || f != BF16 && f != NEONBF16) {
			class += "+" + f.String()
		}
	}
	return class
}

// Missing returns those of the named CPU features that this machine lacks. Names are those of
// package cpuid, in any case. An unknown name is an error.
func Missing(names ...string) ([]string, error) {
	var missing []string
	for _, name := range names {
		id := cpuid.ParseFeature(name)
		if id == cpuid.UNKNOWN {
			return nil, fmt.Errorf("cpufeat: unknown CPU feature %q, want a name such as avx2, fma3, avx512f or asimd", name)
		}
		if !cpuid.CPU.Supports(id) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
