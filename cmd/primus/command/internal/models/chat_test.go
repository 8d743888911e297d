package models_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// chatting runs primus chat with these lines as input.
func chatting(input string, args ...string) commandtest.Outcome {
	var out, stderr primustest.Buffer
	code := command.Main(append([]string{"chat"}, args...), command.Streams{Out: &out, Err: &stderr, In: strings.NewReader(input)})
	return commandtest.Outcome{Code: code, Out: out.String(), Stderr: stderr.String()}
}

func savedAs(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var c struct {
		Messages []struct{ Role, Content string }
	}
	require.NoError(t, json.Unmarshal(text, &c))
	var said []string
	for _, m := range c.Messages {
		said = append(said, m.Role+": "+m.Content)
	}
	return said
}

// A conversation with a model here and with the same one in a service is the same, and each message
// is answered in the light of those before it.
func TestChat(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=4", "seq_length=256").Code)
	t.Chdir(t.TempDir())
	greedy := []string{"--temperature", "0", "--max-tokens", "6"}

	got := chatting("func f1(\n\n/save a.json\n/save a.json\n/nothing\n/save\nfunc f2(\n/save b.json\n/reset\nfunc f1(\n/exit\nnever read\n", append(greedy, l.Path())...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "the model has no chat template: it goes on with the text")
	assert.Contains(t, got.Stderr, "a.json is there already")
	assert.Contains(t, got.Stderr, "no command /nothing: want /system TEXT")
	assert.Contains(t, got.Stderr, "want /save FILE")
	first, both := savedAs(t, "a.json"), savedAs(t, "b.json")
	require.Len(t, first, 2)
	require.Len(t, both, 4)
	assert.Equal(t, first, both[:2])
	assert.Equal(t, "user: func f2(", both[2])
	answer := strings.TrimPrefix(first[1], "assistant: ") + "\n"
	assert.True(t, strings.HasPrefix(got.Out, answer), got.Out)
	assert.True(t, strings.HasSuffix(got.Out, answer), "reset forgets: %q", got.Out)

	require.NoError(t, os.Symlink(l.Dir, "output"))
	named := chatting("func f1(\n", append(greedy, filepath.Base(l.Path()))...)
	assert.Equal(t, answer, named.Out, "a run is found by its name: %s", named.Stderr)

	s := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--model", l.Path(), "--chat-template", "chatml")
	s.WaitFor(" texts of ")
	url := s.Base
	const input = "/system Short.\nHello\nAgain\n/save %.json\n"
	here := chatting(strings.ReplaceAll(input, "%", "here"), append(greedy, l.Path(), "--chat-template", "chatml")...)
	there := chatting(strings.ReplaceAll(input, "%", "there"), append(greedy, url)...)
	require.Zero(t, there.Code, there.Stderr)
	assert.Equal(t, here.Out, there.Out)
	assert.Equal(t, savedAs(t, "here.json"), savedAs(t, "there.json"))
	assert.Equal(t, "system: Short.", savedAs(t, "there.json")[0])

	unformed := commandtest.StartServing(t, "serve", "--listen", "127.0.0.1:0", "--model", l.Path())
	unformed.WaitFor(" texts of ")
	plain := chatting("func f1(\n", append(greedy, unformed.Base)...)
	assert.Equal(t, answer, plain.Out, plain.Stderr)
	assert.Contains(t, plain.Stderr, "the model has no chat template")

	long := chatting(strings.Repeat("word ", 200)+"\nHello\n", append(greedy, url)...)
	assert.Equal(t, 1, long.Code)
	assert.Contains(t, long.Stderr, "no answer: "+url)
	assert.NotEmpty(t, strings.TrimSpace(long.Out), "the conversation goes on")
}

// What is wrong is said before anything is read.
func TestChatRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "want the folder of a model or the address of a service"},
		{[]string{dir}, 1, "no"},
		{[]string{dir, "--temperature", "-1"}, 2, "--temperature"},
		{[]string{dir, "--temperature", "2.1"}, 2, "--temperature: given 2.1, want a number from 0 to 2"},
		{[]string{dir, "--token-file", "x"}, 2, "--token-file is for a service"},
		{[]string{"http://127.0.0.1:1", "--chat-template", "chatml"}, 2, "the service chooses its own"},
		{[]string{"http://127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{[]string{"http://127.0.0.1:1", "--token-file", filepath.Join(dir, "none")}, 2, "--token-file"},
	} {
		got := chatting("hello\n", tt.args...)
		assert.Equal(t, tt.code, got.Code, "%v: %s", tt.args, got.Stderr)
		assert.Contains(t, got.Stderr, tt.want)
	}
}

// An interrupt stops the answer, and the conversation goes on.
func TestChatInterrupt(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=1").Code)
	cmd := commandtest.Child(t.Context(), nil, "chat", l.Path(), "--max-tokens", "10000000")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	p := l.Program(cmd)
	require.NoError(t, p.Start())
	_, err = io.WriteString(in, "func\n")
	require.NoError(t, err)
	before := p.Log.Len()
	p.WaitUntil("an answer", func() bool { return p.Log.Len() > before+200 })
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	file := filepath.Join(t.TempDir(), "c.json")
	_, err = io.WriteString(in, "/save "+file+"\n/exit\n")
	require.NoError(t, err)
	require.NoError(t, p.Wait(), p.Log.String())
	assert.Len(t, savedAs(t, file), 2)
}
