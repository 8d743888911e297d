package command_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The help of posttrain names the backends that have further stages.
func TestPosttrain(t *testing.T) {
	got := primus(t, "backends", "list", "-o", "json")
	require.Zero(t, got.code, got.stderr)
	var backends []struct {
		Framework string
		Stages    []string
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &backends))
	help := primus(t, "train", "posttrain", "--help").out
	further, _, _ := strings.Cut(help, "To train weights")
	for _, b := range backends {
		has := slices.ContainsFunc(b.Stages, func(s string) bool { return s != "pretrain" })
		assert.Equal(t, has, strings.Contains(further, b.Framework), b.Framework)
	}
	assert.NotContains(t, help, "--metrics-addr 127.0.0.1:9400", "no example of what cannot be done")

	l := newLab(t)
	l.write(l.exp, "work_group: g\nuser_name: u\nexp_name: e\nworkspace: "+l.workspace+"\nmodules:\n  post_trainer:\n    framework: megatron\n    lr: 1.0e-4\n")
	t.Setenv("PRIMUS_THIRDPARTY_DIR", l.dir)
	got = primus(t, "train", "posttrain", "--config", l.exp, "stage=sft", "--dry-run")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.out, ", stage sft")
	got = primus(t, "train", "posttrain", "--config", l.exp, "stage=sft")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, onlyError(t, got), "framework megatron: no source tree")
}
