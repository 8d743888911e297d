package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/vendors/loader"
)

const judgeEnv = "MUTANTS_JUDGE_LIBRARY"

// TestMain judges a library where TestMutantsInC asks for that.
func TestMain(m *testing.M) {
	if os.Getenv(judgeEnv) == "" {
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(failed)
	}
}

// The kit refuses mistakes in kernels in C, of which it judges a sample here, and passes the right
// kernels, so that the mistakes are what it refuses.
func TestMutantsInC(t *testing.T) {
	if race.Enabled {
		t.Skip("the mutants share nothing: the race detector would only slow them down")
	}
	if _, err := loader.Open(); errors.Is(err, loader.ErrPlatform) {
		t.Skip(err)
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: ", err)
	}
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	j := cJudge{root: filepath.Join("..", ".."), dir: t.TempDir(), self: self, env: []string{judgeEnv + "=1"}}
	all, rms, plain, err := j.mutants()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(all), 400)
	for op, source := range map[string]string{"rmsnorm_fwd": rms, "rmsnorm_bwd": rms, "swiglu": plain, "cross_entropy_fwd": plain, "fused_rope_forward": plain, "moe_permute_fwd": plain} {
		o, err := j.judge(t.Context(), cMutant{op: op, rule: "right", source: source})
		require.NoError(t, err)
		assert.Empty(t, o.reason, "the right kernel of %s", op)
	}
	const step = 29
	for i := 0; i < len(all); i += step {
		o, err := j.judge(t.Context(), all[i])
		require.NoError(t, err, all[i].name())
		assert.NotEmpty(t, o.reason, all[i].name())
	}
}

func TestMutantsInCNeedTheirKernels(t *testing.T) {
	t.Parallel()
	_, err := cMutants("int main(void) { return 0; }")
	require.ErrorContains(t, err, "given a source without")
	_, err = cMutants("static inline void forward(const primus_call *call) {} static int32_t forward_supports(")
	require.ErrorContains(t, err, `"i < cols;"`)
}
