package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run of a few steps is continued from its directory and from its checkpoint.
func TestGenerate(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=4").Code)
	run := l.Path()
	step := filepath.Join(run, "checkpoints", "step-00000004")
	args := func(more ...string) []string {
		return append([]string{"generate", "--checkpoint", run, "--max-tokens", "12"}, more...)
	}

	got := commandtest.Run(t, args("--prompt", "func f1(")...)
	require.Zero(t, got.Code, got.Stderr)
	assert.NotEmpty(t, strings.TrimSuffix(got.Out, "\n"))
	assert.True(t, utf8.ValidString(got.Out))
	assert.Regexp(t, `^12 tokens in \S+, [\d.]+ tokens/s\n$`, got.Stderr)
	again := commandtest.Run(t, "generate", "--checkpoint", step, "--max-tokens", "12", "--prompt", "func f1(", "--quiet")
	assert.Equal(t, got.Out, again.Out)
	assert.Empty(t, again.Stderr)
	other := commandtest.Run(t, args("--prompt", "func f1(", "--seed", "5", "--temperature", "2")...)
	assert.NotEqual(t, got.Out, other.Out)
	echoed := commandtest.Run(t, args("--prompt", "func f1(", "--echo")...)
	assert.Equal(t, "func f1("+got.Out, echoed.Out)

	// Fine-tuning leaves the template of its conversations beside a model of bytes, too.
	template := filepath.Join(step, "chat_template.jinja")
	require.NoError(t, os.WriteFile(template, []byte("{% for m in messages %}{{ m.content }} f1({% endfor %}"), 0o600))
	chat := commandtest.Run(t, args("--prompt", "func", "--chat", "--temperature", "0")...)
	require.Zero(t, chat.Code, chat.Stderr)
	require.NoError(t, os.Remove(template))

	greedy := commandtest.Run(t, args("--prompt", "func f1(", "--temperature", "0")...)
	assert.Equal(t, greedy.Out, chat.Out)
	require.Zero(t, greedy.Code)
	file := filepath.Join(l.Dir, "prompts.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`"func f1("

{"prompt": "func f2(", "max_tokens": 3, "temperature": 0, "seed": null}
`), 0o600))
	both := commandtest.Run(t, args("--prompts", file, "--temperature", "0", "-o", "json")...)
	require.Zero(t, both.Code, both.Stderr)
	lines := strings.Split(strings.TrimSuffix(both.Out, "\n"), "\n")
	require.Len(t, lines, 2)
	for i, want := range []struct {
		prompt string
		tokens int
	}{{"func f1(", 12}, {"func f2(", 3}} {
		var line struct {
			Prompt, Text string
			Tokens       int
			Finish       string `json:"finish_reason"`
		}
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		assert.Equal(t, want.prompt, line.Prompt)
		assert.Equal(t, want.tokens, line.Tokens)
		assert.Equal(t, "length", line.Finish)
		if i == 0 {
			assert.Equal(t, greedy.Out, line.Text+"\n")
		}
	}

	talk := commandtest.Run(t, args("--prompt", "x", "--chat", "--chat-template", "zephyr", "--context", "100")...)
	assert.Zero(t, talk.Code, talk.Stderr)

	for give, want := range map[string]struct {
		code int
		text string
	}{
		"":                                         {2, "no prompt given"},
		"--prompt x --prompts y":                   {2, "want one of them"},
		"--prompt x --system y":                    {2, "need --chat"},
		"--prompt x --temperature -1":              {2, "--temperature: given -1"},
		"--prompt x --top-p 2":                     {2, "--top_p: given 2"},
		"--prompt x --parallel 0":                  {2, "--parallel: given 0"},
		"--prompt x -o yaml":                       {2, "text or json"},
		"--prompt x --chat":                        {1, "no chat template"},
		"--prompt x --chat --chat-template chatmL": {1, `did you mean "chatml"`},
		"--prompt x --context 1":                   {1, "fewer than the 1"},
		"--prompts /nonexistent/file":              {1, "--prompts: open /nonexistent/file"},
		"--prompt x --checkpoint /none":            {1, "/none"},
	} {
		got := commandtest.Run(t, args(strings.Fields(give)...)...)
		assert.Equal(t, want.code, got.Code, give)
		assert.Contains(t, got.Stderr, want.text, give)
		assert.Empty(t, got.Out, give)
	}
	for text, want := range map[string]string{
		"{}":                                "line 1",
		`{"prompt": 1}`:                     "line 1",
		`{"prompt": "x", "max_tokens": -2}`: "prompt 1: max_tokens",
		"\n\n":                              "no prompts",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got := commandtest.Run(t, args("--prompts", file)...)
		assert.Equal(t, 1, got.Code, text)
		assert.Contains(t, got.Stderr, want, text)
	}
	missing := commandtest.Run(t, "generate", "--prompt", "x")
	assert.Equal(t, 2, missing.Code)
	assert.Contains(t, missing.Stderr, "--checkpoint DIR")
}
