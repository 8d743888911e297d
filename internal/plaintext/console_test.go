package plaintext

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
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
