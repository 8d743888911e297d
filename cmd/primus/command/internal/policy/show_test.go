package policy_test

import (
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/goldentest"
	"github.com/stretchr/testify/require"
)

func TestPolicyShowGolden(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		got := commandtest.Run(t, "policy", "show")
		require.Zero(t, got.Code, got.Stderr)
		goldentest.Check(t, "policy_default.txt", got.Out)
	})
	t.Run("set", func(t *testing.T) {
		t.Setenv("TE_FL_PREFER_VENDOR", "1")
		t.Setenv("TE_FL_STRICT", "on")
		t.Setenv("TE_FL_ALLOW_VENDORS", "Zeta, acme,zeta")
		t.Setenv("TE_FL_DENY_VENDORS", "amd")
		t.Setenv("TE_FL_SKIP_CUDA", "1")
		t.Setenv("TE_FL_PER_OP", "swiglu=default|vendor:ACME;*_bwd=impl:reference.go")
		got := commandtest.Run(t, "policy", "show")
		require.Zero(t, got.Code, got.Stderr)
		goldentest.Check(t, "policy.txt", got.Out)
		goldentest.Check(t, "policy.json", commandtest.Run(t, "policy", "show", "-o", "json").Out)
	})
	t.Run("file", func(t *testing.T) {
		got := commandtest.Run(t, "policy", "show", "--policy", "testdata/policy_file.yaml")
		require.Zero(t, got.Code, got.Stderr)
		goldentest.Check(t, "policy_file.txt", got.Out)
		goldentest.Check(t, "policy_file.json", commandtest.Run(t, "policy", "show", "--policy", "testdata/policy_file.yaml", "-o", "json").Out)
	})
}
