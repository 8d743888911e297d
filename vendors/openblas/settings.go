package openblas

import (
	"strconv"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/primus-fl/primus/vendors/internal/blas"
	"github.com/primus-fl/primus/vendors/loader"
)

// generation orders CPUs and OpenBLAS's kernels by the vector instructions that products use.
type generation int

const (
	unknown generation = iota // not amd64, or a core type not in the table
	legacy                    // less than AVX2 and FMA
	avx2
	avx512
)

// cpuGeneration returns the generation of this machine's CPU.
func cpuGeneration() generation {
	switch x := &cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ:
		return avx512
	case x.HasAVX2 && x.HasFMA:
		return avx2
	case x.HasSSE2:
		return legacy
	}
	return unknown
}

// coreGenerations lists OpenBLAS's core types on amd64, as openblas_get_corename spells them, in
// lower case.
var coreGenerations = map[string]generation{
	"katmai": legacy, "coppermine": legacy, "northwood": legacy, "prescott": legacy, "banias": legacy,
	"core2": legacy, "penryn": legacy, "dunnington": legacy, "nehalem": legacy, "atom": legacy,
	"sandybridge": legacy, "athlon": legacy, "opteron": legacy, "opteron_sse3": legacy, "barcelona": legacy,
	"bobcat": legacy, "bulldozer": legacy, "piledriver": legacy, "nano": legacy, "generic": legacy,
	"steamroller": avx2, "excavator": avx2, "haswell": avx2, "zen": avx2,
	"skylakex": avx512, "cooperlake": avx512, "sapphirerapids": avx512,
}

func coreGeneration(core string) generation { return coreGenerations[strings.ToLower(core)] }

// idleTimeout is how long, as a power of two of clock cycles, OpenBLAS's threads spin for more work
// before they sleep. The default of 2²⁶ slows other work on the same CPUs for some 25 ms after each
// product.
const idleTimeout = "16"

// settings returns the variables that OpenBLAS reads, to set where the user has not set them.
func settings(g generation, opts Options, isSet func(string) bool) []loader.Variable {
	var s []loader.Variable
	switch g {
	case avx512:
		s = append(s, loader.Variable{Name: "OPENBLAS_CORETYPE", Value: "SkylakeX"})
	case avx2:
		s = append(s, loader.Variable{Name: "OPENBLAS_CORETYPE", Value: "Haswell"})
	}
	if opts.Threads > 0 || !isSet("OMP_NUM_THREADS") {
		s = append(s, loader.Variable{Name: "OPENBLAS_NUM_THREADS", Value: strconv.Itoa(blas.Threads(opts.Threads))})
	}
	return append(s, loader.Variable{Name: "OPENBLAS_THREAD_TIMEOUT", Value: idleTimeout})
}
