package gemm_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The loops over four steps of the kernels of arm64 do little else than products: of 32 registers,
// 24 are sums, and one instruction loads what several products read. Where the steps of A lie side
// by side, six rows are loaded one by one, and B in two halves for want of registers.
func TestLoopsOfARM64AreProducts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it builds a program for arm64")
	}
	file := filepath.Join(t.TempDir(), "gemm.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", file, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, product := range map[string]struct{ mask, bits uint64 }{
		"gemm6x16NEON":  {0xffc0f400, 0x4f801000}, // FMLA Vd.4S, Vn.4S, Vm.S[e]
		"pairs6x16NEON": {0xffc0f400, 0x4f40f000}, // BFDOT Vd.4S, Vn.8H, Vm.2H[e]
	} {
		text, err := exec.CommandContext(t.Context(), "go", "tool", "objdump", "-s", `gemm\.`+name, file).Output()
		require.NoError(t, err)
		var shares []float64
		for _, loop := range loops(t, string(text)) {
			products := 0
			for _, word := range loop {
				if word&product.mask == product.bits {
					products++
				}
			}
			if products == 4*6*4 {
				shares = append(shares, float64(products)/float64(len(loop)))
			}
		}
		require.Len(t, shares, 2, "%s: loops of four steps", name)
		assert.GreaterOrEqual(t, shares[0], 0.85, "%s: the steps of A lie side by side", name)
		assert.GreaterOrEqual(t, shares[1], 0.90, "%s: the rows of A lie side by side", name)
	}
}

var (
	instruction = regexp.MustCompile(`(?m)^\s+\S+:\d+\s+0x[0-9a-f]+\s+([0-9a-f]{8})\s+(.*)$`)
	backward    = regexp.MustCompile(`^B\S* -(\d+)\(PC\)`)
)

// loops returns the instructions of each loop of a disassembled function, the branch included.
func loops(t *testing.T, text string) (loops [][]uint64) {
	t.Helper()
	var words []uint64
	for _, line := range instruction.FindAllStringSubmatch(text, -1) {
		word, err := strconv.ParseUint(line[1], 16, 32)
		require.NoError(t, err)
		words = append(words, word)
		if to := backward.FindStringSubmatch(strings.TrimSpace(line[2])); to != nil {
			back, err := strconv.Atoi(to[1])
			require.NoError(t, err)
			loops = append(loops, words[len(words)-1-back:])
		}
	}
	return loops
}
