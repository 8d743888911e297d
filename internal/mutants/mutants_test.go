package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/race"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
)

// The sample of the corpus; make mutants judges all.
const (
	sampleSeed = 1
	sampleStep = 12
)

func TestSampleIsRefused(t *testing.T) {
	if race.Enabled {
		t.Skip("the mutants share nothing: the race detector would only slow them down")
	}
	t.Parallel()
	var survivors []string
	reasons := &strings.Builder{}
	all := corpus(sampleSeed)
	isKnown := len(known())
	judged := 0
	for i, m := range all {
		if i >= isKnown && i%sampleStep != 0 {
			continue
		}
		o, err := judge(m)
		require.NoError(t, err, m.name())
		if o.reason == "" && o.changed != 0 {
			survivors = append(survivors, m.name())
		}
		judged++
		reasons.WriteString(o.reason + "\n")
	}
	t.Logf("%d mutants of %d, %d survived", judged, len(all), len(survivors))
	assert.Empty(t, survivors)
	assert.GreaterOrEqual(t, len(all), 300)
	for _, reason := range []string{
		"is not what the oracle computes", "although the op only reads it", "guard elements were written to, the first at a gap, ",
		"guard elements were written to, the first at 1 element after the last", "before the impl declined", "it declined all cases",
		"the impl failed: no strides", "panic: empty", "differs with one worker and with several", "differs alone and beside other calls",
		"declined a case that it must serve", "beyond the end of operand", "after_other_calls/",
	} {
		assert.Contains(t, reasons.String(), reason)
	}
	assert.NotContains(t, reasons.String(), "the case itself is wrong")
	assert.NotContains(t, reasons.String(), "the oracle:")
}

const gradientsEnv = "MUTANTS_CHECK_GRADIENTS"

// TestGradCheckRefuses runs itself in a child process, where the gradients are wrong.
func TestGradCheckRefuses(t *testing.T) {
	if os.Getenv(gradientsEnv) != "" {
		t.Run("sign", func(t *testing.T) {
			backward := opregistry.Impl{Op: activation.DSwiGLU, ID: "wrong", Run: func(x *opregistry.Exec, a activation.DSwiGLUArgs) error {
				if err := function(activation.DSwiGLU)(x, a); err != nil {
					return err
				}
				return each(a.Output, func(v float64) float64 { return -v })
			}}
			opscases.All().GradCheck(t, backward, right(activation.SwiGLU))
		})
		t.Run("1e-5", func(t *testing.T) {
			backward := opregistry.Impl{Op: norm.RMSNormBwd, ID: "wrong", Run: func(x *opregistry.Exec, a norm.RMSNormBwdArgs) error {
				if err := function(norm.RMSNormBwd)(x, a); err != nil {
					return err
				}
				return each(a.DX, func(v float64) float64 { return v * (1 + 1e-5) })
			}}
			opscases.All().GradCheck(t, backward, right(norm.RMSNormFwd))
		})
		return
	}
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestGradCheckRefuses$", "-test.v")
	cmd.Env = append(os.Environ(), gradientsEnv+"=1")
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "the child process has to fail")
	for _, name := range []string{"sign", "1e-5"} {
		assert.Contains(t, string(output), "--- FAIL: TestGradCheckRefuses/"+name+" (")
	}
	assert.Contains(t, string(output), "is not that of central differences")
}
