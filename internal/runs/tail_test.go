package runs_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/stretchr/testify/assert"
)

func TestTail(t *testing.T) {
	for _, tt := range []struct {
		name, give string
		lines      int
		want       string
	}{
		{"nothing", "", 3, ""},
		{"fewer", "a\nb\n", 3, "a\nb\n"},
		{"as many", "a\nb\n", 2, "a\nb\n"},
		{"more", "a\nb\nc\n", 2, "b\nc\n"},
		{"no end of line", "a\nb\nc", 2, "b\nc"},
		{"empty lines", "a\n\n\n", 2, "\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tail runs.Tail
			for _, c := range tt.give {
				_, err := tail.Write([]byte(string(c)))
				assert.NoError(t, err)
			}
			assert.Equal(t, tt.want, string(tail.Lines(tt.lines)))
		})
	}
}

// A long log takes a bounded part of the memory, and what is left begins with a whole line.
func TestTailOfALongLog(t *testing.T) {
	var tail runs.Tail
	for i := range 100_000 {
		_, err := tail.Write([]byte("line " + strconv.Itoa(i) + "\n"))
		assert.NoError(t, err)
	}
	got := string(tail.Lines(1_000_000))
	assert.Less(t, len(got), 64<<10+1)
	assert.True(t, strings.HasPrefix(got, "line "), got[:20])
	assert.True(t, strings.HasSuffix(got, "\nline 99999\n"))
}
