package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/tokenizer/chat"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

func parse(t *testing.T, source string) *chat.Template {
	t.Helper()
	parsed, err := chat.Parse(source)
	require.NoError(t, err)
	return parsed
}

func named(t *testing.T, name string) *chat.Template {
	t.Helper()
	source, err := chat.Named(name)
	require.NoError(t, err)
	return parse(t, source)
}

func TestNamed(t *testing.T) {
	t.Parallel()
	assert.Subset(t, chat.Names(), []string{"chatml", "llama2", "llama3", "mistral", "zephyr"})
	c := chat.Conversation{Messages: chat.Messages(chat.Message{"user", "Hi"}, chat.Message{"assistant", "Yo"}), BOS: "<s>", EOS: "</s>"}
	for name, want := range map[string]string{
		"chatml":  "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n",
		"llama2":  "<s>[INST] Hi [/INST] Yo </s>",
		"llama3":  "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>",
		"zephyr":  "<|user|>\nHi</s>\n<|assistant|>\nYo</s>\n",
		"mistral": "<s>[INST] Hi [/INST] Yo</s>",
	} {
		text, err := named(t, name).Text(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, want, text, name)
	}
	source, err := chat.Source(filepath.Join("templates", "zephyr.jinja"))
	require.NoError(t, err)
	assert.Contains(t, source, "<|assistant|>")
	_, err = chat.Source("chatlm")
	require.ErrorContains(t, err, "zephyr, or a file")
	_, err = chat.Source("templates")
	require.Error(t, err)
	_, err = chat.Named("chatlm")
	assert.ErrorContains(t, err, `did you mean "chatml"?`)
}

// learned returns the samples with their answers in brackets.
func learned(t *testing.T, template *chat.Template, messages ...chat.Message) []string {
	t.Helper()
	samples, err := template.Samples(t.Context(), chat.Conversation{Messages: chat.Messages(messages...), BOS: "<s>", EOS: "</s>"})
	require.NoError(t, err)
	var all []string
	for _, s := range samples {
		text := s.Text
		for i := len(s.Answers) - 1; i >= 0; i-- {
			a := s.Answers[i]
			text = text[:a.Begin] + "⟦" + text[a.Begin:a.End] + "⟧" + text[a.End:]
		}
		all = append(all, text)
	}
	return all
}

func TestSamples(t *testing.T) {
	t.Parallel()
	talk := []chat.Message{{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}}
	assert.Equal(t, []string{"<s>[INST] a [/INST]⟦ b </s>⟧<s>[INST] c [/INST]⟦ d </s>⟧"}, learned(t, named(t, "llama2"), talk...), "marked by the template")
	assert.Equal(t, []string{"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n⟦b<|im_end|>⟧\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n⟦d<|im_end|>⟧\n"},
		learned(t, named(t, "chatml"), talk...))

	plain := "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}a:{% endif %}"
	assert.Equal(t, []string{"u:a;a:⟦b;⟧u:c;a:⟦d;⟧"}, learned(t, parse(t, plain), talk...), "found by comparison")

	qwen, err := os.ReadFile(filepath.Join("testdata", "qwen3.jinja"))
	require.NoError(t, err)
	assert.Equal(t, []string{
		"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n⟦<think>\n\n</think>\n\nb<|im_end|>\n⟧",
		"<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n⟦<think>\n\n</think>\n\nd<|im_end|>\n⟧",
	}, learned(t, parse(t, string(qwen)), talk...), "one sample per answer where earlier answers look otherwise")

	for _, tt := range []struct {
		want, source string
		messages     any
	}{
		{"want a list of one message or more", plain, nil},
		{"want a list of one message or more", plain, chat.Messages()},
		{"given no answer", plain, chat.Messages(chat.Message{"user", "a"})},
		{"the first message is of the role assistant", plain, chat.Messages(chat.Message{"assistant", "a"})},
		{"does not begin with the text before it", "{{ messages | length }}{{ add_generation_prompt }}", chat.Messages(talk...)},
		{"refuses the conversation: no (line 1, column 19)", "{{ raise_exception('no') }}", chat.Messages(talk...)},
	} {
		_, err := parse(t, tt.source).Samples(t.Context(), chat.Conversation{Messages: tt.messages})
		assert.ErrorContains(t, err, tt.want)
	}
	strange, err := chat.ParseJSON([]byte(`["x"]`))
	require.NoError(t, err)
	_, err = parse(t, plain).Samples(t.Context(), chat.Conversation{Messages: strange})
	assert.ErrorContains(t, err, "message 1: given a string, want an object")
}

// What is not covered is named with its position.
func TestErrorsHavePositions(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"a\n{% include 'x' %}":                   `line 2, column 4: the block "include" is not supported; supported are for, if`,
		"{% fro x in y %}":                       `the block "fro" is not supported; did you mean "for"?`,
		"{{ x | trin }}":                         `line 1, column 8: the filter "trin" is not supported; did you mean "trim"?`,
		"{{ x is defind }}":                      `the test "defind" is not supported; did you mean "defined"?`,
		"{% for x in y recursive %}{% endfor %}": "a recursive loop is not supported",
		"{{ f(*x) }}":                            "arguments of the form *name are not supported",
		"{% break %}":                            "break is outside of a loop",
		"x\n  {{ 'a'.zfill(2) }}":                "line 2, column 9: the method zfill of a string is not supported",
		"{% raw %}x":                             "raw has no end",
		"{{ '\\xzz' }}":                          "is no character",
		"{{ 99999999999999999999 }}":             "out of range",
		"{{ 9223372036854775807 + 1 }}":          "out of range",
		"{{ 3 ** 50 }}":                          "out of range",
		"{{ 'a' * 99999999999 }}":                "longer than",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}":                                "more than 100 levels",
		"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "more than 3000000 steps",
		strings.Repeat("(", 300): "nested deeper than 200 levels",
		"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}": "nested deeper than 200 levels",
		"{{ strftime_now('%Q') }}": "the code %Q is not supported",
		"{{ \x01 }}":               "belongs to no expression",
		"{% set x = 'a' %}{% for i in range(40) %}{% set ns = x ~ x %}{% endfor %}{{ [1].append(2) }}": "the method append of a list is not supported",
	} {
		parsed, err := chat.Parse(source)
		if err == nil {
			_, _, err = parsed.Render(t.Context(), chat.Vars{}, time.Time{})
		}
		if strings.HasPrefix(source, "(") {
			assert.NoError(t, err, "text")
			continue
		}
		assert.ErrorContains(t, err, want, source)
	}
}

func TestNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 15, 6, 7, 0, time.UTC)
	text, _, err := parse(t, "{{ strftime_now('%d %b %Y %B %m %H:%M:%S %A %-d %% %y') }}").Render(t.Context(), nil, now)
	require.NoError(t, err)
	assert.Equal(t, "04 Mar 2026 March 03 15:06:07 Wednesday 4 % 26", text)
}

func TestParseJSON(t *testing.T) {
	t.Parallel()
	v, err := chat.ParseJSON([]byte(`{"b": 1, "a": [1.5, null, true, "x", 123456789012345678901234567890]}`))
	require.NoError(t, err)
	text, _, err := parse(t, "{{ v | tojson }}").Render(t.Context(), chat.Vars{"v": v}, time.Time{})
	require.NoError(t, err)
	assert.Equal(t, `{"b": 1, "a": [1.5, null, true, "x", 1.2345678901234568e+29]}`, text, "in the order of the keys")
	for _, wrong := range []string{"", "{", "[1,]", "1 2", strings.Repeat("[", 200), `{"a"}`} {
		_, err := chat.ParseJSON([]byte(wrong))
		assert.Error(t, err, wrong)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range snippets {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		defer primustest.Measured(t, len(source))()
		if len(source) > 1000 {
			return
		}
		parsed, err := chat.Parse(source)
		if err != nil {
			return
		}
		_, _ = parsed.Text(t.Context(), chat.Conversation{Messages: chat.Messages(chat.Message{"user", "Hé \"x\"\n"}, chat.Message{"assistant", "b"})})
	})
}
