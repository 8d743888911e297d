package python_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program writes for each line of JSON what PyYAML and str make of it.
const program = `
import json, sys, yaml
for line in sys.stdin:
    value = json.loads(line)
    print(json.dumps([yaml.dump(value, default_flow_style=False, allow_unicode=True), str(value["value"])]))
`

// TestPyYAML compares with PyYAML and Python.
func TestPyYAML(t *testing.T) {
	interpreter := primustest.Python(t, "yaml")
	values := []any{
		nil, true, false, 0, -12, 1.0, 0.1, 1e-6, 1.5e-8, 3e20, 1e16, 123456789.0, 1e15, []any{}, map[string]any{}, []any{1, []any{2, "a"}, map[string]any{"b": 1, "a": []any{3}}},
		map[string]any{"list": []any{"x", map[string]any{"k": []any{}}}, "nested": map[string]any{"z": nil, "yes": "no"}},
	}
	for _, text := range []string{
		"", " ", "a", "1", "1e3", "1.0e+3", "0x1f", "0o7", "0b1", "07", "1_000", "12:30", "1:2.5", ".5", "-.inf", ".NaN", "~", "null", "Null", "nULL", "yes", "On", "y", "<<", "=",
		"2024-01-01", "2024-1-1 10:00:00", "-", "--", "---", "--- a", "...", "- a", "-a", "?", "? a", "?a", ":", ":a", "a:", "a: b", "a:b", "#", "a #b", "a#b", "a, b", "[x]", "{x}", "x]",
		"&a", "*a", "!a", "|", ">", "%", "@", "`", "'", "it's", `"`, `a "b" c`, `\`, "tab\there", "a\nb", "a\n", "\na", "a\n\nb", "a \nb", "a\n b", "é", "日本語", "\u00a0", "\ufeff", "\u0085",
		"\x00", "\x1b[0m", "😀", " lead", "trail ", "two  spaces", "# x", "0", "-0", "+1", "1.", "1.e", "00", "08", "true", "None", "a\r\nb", "a\u2028b",
		strings.Repeat("word ", 40), strings.Repeat("word ", 40) + "end", strings.Repeat("word  ", 30) + "end", strings.Repeat("x", 200), "a: " + strings.Repeat("quoted words ", 20) + "end",
		"tab\t" + strings.Repeat("escaped words ", 20) + "end", "it's " + strings.Repeat("a'b c ", 40) + "end", strings.Repeat("line of text\n", 12) + strings.Repeat("word ", 30) + "end",
	} {
		values = append(values, text, []any{text, []any{text}})
		if text != "" && len(text) < 100 && !strings.ContainsAny(text, "\n\u0085\u2028") { // others are no names of parameters
			values = append(values, map[string]any{text: text})
		}
	}
	random := rand.New(rand.NewPCG(21, 2))
	alphabet := []rune("ab1 -:#,.?'\"\\\n\té[]{}&0x_e+~😀\u00a0")
	for range 3000 {
		text := make([]rune, random.IntN(12))
		if random.IntN(8) == 0 {
			text = make([]rune, random.IntN(220))
		}
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		values = append(values, string(text))
	}
	var input bytes.Buffer
	for _, v := range values {
		line, err := json.Marshal(map[string]any{"value": v})
		require.NoError(t, err)
		if f, ok := v.(float64); ok {
			line = fmt.Appendf(nil, `{"value": %s}`, strconv.FormatFloat(f, 'e', -1, 64))
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.Command(interpreter, "-c", program)
	cmd.Stdin = &input
	out, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	require.Len(t, lines, len(values))
	for i, v := range values {
		var want [2]string
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &want))
		value, err := document.FromGo(v)
		require.NoError(t, err)
		got, err := python.YAML(map[string]document.Value{"value": value})
		require.NoError(t, err)
		assert.Equal(t, want[0], got, "%q", v)
		if _, isMap := v.(map[string]any); !isMap {
			assert.Equal(t, want[1], python.Str(value), "%q", v)
		}
	}
}
