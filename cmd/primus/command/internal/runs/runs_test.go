package runs_test

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRuns(t *testing.T) {
	l := commandtest.NewLab(t)
	for _, args := range [][]string{{"exp_name=one", "eval_interval=4"}, {"exp_name=two", "lr=1e-3"}, {"exp_name=three", "train_iters=4"}} {
		got := l.Train(args...)
		require.Zero(t, got.Code, got.Stderr)
	}
	run := func(args ...string) commandtest.Outcome {
		return commandtest.Run(t, append([]string{"runs", args[0], "--workspace", l.Workspace}, args[1:]...)...)
	}

	got := run("list", "--sort", "name")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?s)group/user/one .* done +8/8 .*group/user/three .* done +4/4 .*group/user/two .* done +8/8 `, got.Out)
	got = run("list", "-o", "json", "--sort", "valid_loss")
	var listed []runs.Run
	require.NoError(t, json.Unmarshal([]byte(got.Out), &listed))
	require.Len(t, listed, 3)
	assert.Equal(t, "group/user/one", listed[0].ID, "the others have no evaluation")

	got = run("checkpoints", "one")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^ +8  good    \d\.\d{4}  .* one-[0-9a-f]{16}  .*step-00000008$`, got.Out)
	got = run("checkpoints", filepath.Join(l.Workspace, "group", "user", "two"), "-o", "json")
	var saved []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Out), &saved), got.Out)
	assert.Equal(t, "good", saved[0]["judgement"])
	assert.Nil(t, saved[0]["valid_loss"])

	got = run("compare", "one", "user/two")
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `(?m)^parameter +group/user/one +group/user/two$`, got.Out)
	assert.Regexp(t, `(?m)^eval_interval +4 +0$`, got.Out)
	assert.Regexp(t, `(?m)^lr +0\.003 +0\.001$`, got.Out)
	assert.NotContains(t, got.Out, "train_iters", "it is the same")
	assert.NotContains(t, got.Out, "exp_name")
	assert.Regexp(t, `(?m)^step +8 +8 \(\+0\)$`, got.Out)
	assert.Regexp(t, `(?m)^valid_loss +\d\.\d+ +-$`, got.Out)
	got = run("compare", "one", "two", "-o", "json")
	var c runs.Comparison
	require.NoError(t, json.Unmarshal([]byte(got.Out), &c))
	assert.Equal(t, []string{"group/user/one", "group/user/two"}, c.Runs)
	require.Len(t, c.Parameters, 2)
	for _, f := range c.Figures {
		if f.Name == "loss" {
			assert.InDelta(t, *f.Values[1]-*f.Values[0], *f.Differences[1], 1e-12)
		}
	}
	assert.Contains(t, run("compare", "one", "one").Out, "the parameters are the same")

	file := filepath.Join(t.TempDir(), "losses.png")
	got = run("plot", "one", "two", "--file", file)
	require.Zero(t, got.Code, got.Stderr)
	assert.Equal(t, file+"\n", got.Out)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	assert.Greater(t, picture.Bounds().Dx(), 1000)

	for _, tt := range []struct {
		want string
		args []string
	}{
		{`has no run "on"; did you mean "one"`, []string{"compare", "on", "two"}},
		{"given 1 run, want two or more", []string{"compare", "one"}},
		{"want a name that ends with .png", []string{"plot", "--file", "losses.svg"}},
		{"--over: given \"luck\", want step, tokens, time", []string{"plot", "--over", "luck"}},
		{"--sort: ", []string{"list", "--sort", "luck"}},
		{`has no run ""`, []string{"plot", ""}},
	} {
		got := run(tt.args...)
		assert.Equal(t, 2, got.Code, tt.args)
		assert.Contains(t, commandtest.OnlyError(t, got), tt.want)
	}
	got = commandtest.Run(t, "runs", "list", "--workspace", filepath.Join(l.Dir, "none"))
	assert.Equal(t, 2, got.Code)
	empty := t.TempDir()
	assert.Equal(t, "no runs\n", commandtest.Run(t, "runs", "list", "--workspace", empty).Out)
	assert.Contains(t, commandtest.Run(t, "runs", "plot", "--workspace", empty).Stderr, "given no run with a step")
}
