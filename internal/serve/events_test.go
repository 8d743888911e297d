package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quoted returns the words in backquotes or quotes of a text, sorted and once each.
func quoted(text, pattern string) []string {
	var words []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func between(t *testing.T, file, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(text), from)
	require.True(t, ok, "%s in %s", from, file)
	part, _, ok := strings.Cut(after, to)
	require.True(t, ok, "%s in %s", to, file)
	return part
}

// The types of events are the same in the code, on the page and in both documents.
func TestEventTypesAreListed(t *testing.T) {
	all := slices.Sorted(slices.Values(serve.EventTypes()))
	without := func(drop ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(drop, s) })
	}
	source, err := os.ReadFile("hub.go")
	require.NoError(t, err)
	made := quoted(string(source), `Type: +"(\w+)"`)
	for _, c := range backend.HealthChanges() {
		made = append(made, string(c))
	}
	made = append(made, "failed", "declined") // chosen in OnEvent
	slices.Sort(made)
	assert.Equal(t, all, slices.Compact(made))
	var rows strings.Builder
	for line := range strings.Lines(between(t, "../../docs/reference/service.md", "| type | when |", "The latest 1024")) {
		cells := strings.Split(line, "|")
		if len(cells) > 1 {
			rows.WriteString(cells[1])
		}
	}
	assert.Equal(t, all, quoted(rows.String(), "`(\\w+)`"))
	assert.Equal(t, without("step", "lost"), quoted(between(t, "../../docs/howto/operations.md", "The types are ", "Ranks other"), "`(\\w+)`"))
	assert.Equal(t, without("step"), quoted(between(t, "web/events.js", "for (const type of [", "]"), `'(\w+)'`))
}

// Each event is a line, also those from before the log was there.
func TestEventsAreLines(t *testing.T) {
	h := serve.NewHub()
	h.RunStarted(backend.Run{Name: "r"})
	var out bytes.Buffer
	h.LogTo(slog.New(slog.NewJSONHandler(&out, nil)))
	h.CheckpointSaved(7)
	h.StepDone(backend.Step{Step: 8})
	for _, c := range backend.HealthChanges() {
		h.Judged(backend.Judgement{Change: c, Step: 9, Text: "why"})
	}
	h.Stalled(backend.Stall{Text: "where"})
	h.Resumed()
	h.OnEvent(opmanager.Failed{Op: "o", Err: errors.New("e")})
	h.RunEnded(backend.Result{})
	var types []string
	for line := range strings.Lines(out.String()) {
		var l map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		types = append(types, l["event"].(string))
	}
	assert.Equal(t, []string{
		"run_started", "checkpoint_saved", "spike", "skipped", "rewound", "diverged", "recovered", "stalled", "resumed", "failed", "run_ended",
	}, types)
}
