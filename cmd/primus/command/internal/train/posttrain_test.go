package train_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The help of posttrain names the backends that have further stages.
func TestPosttrain(t *testing.T) {
	got := commandtest.Run(t, "backends", "list", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var backends []struct {
		Framework string
		Stages    []string
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &backends))
	help := commandtest.Run(t, "train", "posttrain", "--help").Out
	further, _, _ := strings.Cut(help, "names the weights")
	for _, b := range backends {
		has := slices.ContainsFunc(b.Stages, func(s string) bool { return s != "pretrain" })
		assert.Equal(t, has, strings.Contains(further, b.Framework), b.Framework)
	}
	assert.NotContains(t, help, "--metrics-addr 127.0.0.1:9400", "no example of what cannot be done")

	l := commandtest.NewLab(t)
	l.Write(l.Exp, "work_group: g\nuser_name: u\nexp_name: e\nworkspace: "+l.Workspace+"\nmodules:\n  post_trainer:\n    framework: megatron\n    lr: 1.0e-4\n")
	t.Setenv("PRIMUS_THIRDPARTY_DIR", l.Dir)
	got = commandtest.Run(t, "train", "posttrain", "--config", l.Exp, "stage=sft", "--dry-run")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, ", stage sft")
	got = commandtest.Run(t, "train", "posttrain", "--config", l.Exp, "stage=sft")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, commandtest.OnlyError(t, got), "framework megatron: no source tree")
}
