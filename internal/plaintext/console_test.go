package plaintext

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConsoleKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Out: &out, Width: func() int { return 20 }}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 200 {
				_, err := io.WriteString(c, "a line of the log\n")
				assert.NoError(t, err)
			}
		})
	}
	for range 200 {
		c.SetStatus("status 1")
		c.SetStatus("status 2, which is too long for the terminal")
	}
	writers.Wait()
	c.SetStatus("")
	text := out.String()
	for _, status := range []string{"status 1", "status 2, which is "} {
		text = strings.ReplaceAll(text, "\r"+status+EraseRest, "")
		text = strings.ReplaceAll(text, status, "")
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, eraseLine, ""), "\r", "")
	assert.Equal(t, strings.Repeat("a line of the log\n", 800), text)
}

func TestConsoleWithoutTerminalHasNoStatus(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Out: &out}
	c.SetStatus("status")
	assert.Empty(t, out.String())
}

// rows is what a terminal shows that understands carriage return, line feed, and how to go up and
// to erase.
func rows(t *testing.T, text string) []string {
	t.Helper()
	lines, row, column := [][]rune{nil}, 0, 0
	for text != "" {
		var up int
		if n, _ := fmt.Sscanf(text, "\x1b[%dA", &up); n == 1 {
			row -= up
			require.GreaterOrEqual(t, row, 0)
			text = text[strings.IndexByte(text, 'A')+1:]
			continue
		}
		switch r := []rune(text)[0]; {
		case strings.HasPrefix(text, eraseDown):
			lines = lines[:row+1]
			fallthrough
		case strings.HasPrefix(text, EraseRest):
			lines[row] = lines[row][:min(column, len(lines[row]))]
			text = text[len(EraseRest):]
		case r == '\r':
			column = 0
			text = text[1:]
		case r == '\n':
			if row, column = row+1, 0; row == len(lines) {
				lines = append(lines, nil)
			}
			text = text[1:]
		default:
			if column == len(lines[row]) {
				lines[row] = append(lines[row], r)
			}
			lines[row][column] = r
			column++
			text = text[len(string(r)):]
		}
	}
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = string(line)
	}
	return shown
}

func TestConsoleWithStatusOfSeveralLines(t *testing.T) {
	var out bytes.Buffer
	c := &Console{Out: &out, Width: func() int { return 20 }}
	var log []string
	for i, status := range []string{"one", "two\nlines", "two\nl", "a plot\nof several\nlines, too long for it\nbar", "bar", "a\nb\nc", ""} {
		c.SetStatus(status)
		log = append(log, fmt.Sprint("log ", i))
		_, err := fmt.Fprintln(c, log[i])
		require.NoError(t, err)
		want := append(slices.Clone(log), strings.Split(strings.ReplaceAll(status, "lines, too long for it", "lines, too long for"), "\n")...)
		assert.Equal(t, want, rows(t, out.String()))
	}
}
