package train_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// screen is a terminal: it understands carriage return, line feed and erasing to the end of the
// line.
type screen struct {
	lines  [][]rune
	column int
	frames []string // what the last line held each time its rest was erased
}

func (s *screen) last() []rune { return s.lines[len(s.lines)-1] }

func (s *screen) feed(text string) {
	s.lines = [][]rune{nil}
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			s.lines[len(s.lines)-1] = s.last()[:min(s.column, len(s.last()))]
			s.frames = append(s.frames, string(s.last()))
			text = text[len("\x1b[K"):]
			continue
		case text[0] == '\r':
			s.column = 0
		case text[0] == '\n':
			s.lines = append(s.lines, nil)
			s.column = 0
		default:
			r := []rune(text)[0]
			if line := s.last(); s.column < len(line) {
				line[s.column] = r
			} else {
				s.lines[len(s.lines)-1] = append(line, r)
			}
			s.column++
			text = text[len(string(r)):]
			continue
		}
		text = text[1:]
	}
}

func TestTerminal(t *testing.T) {
	for _, width := range []int{120, 30, 1} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			l := commandtest.NewLab(t)
			stderr := &primustest.Buffer{}
			code := command.Main(l.Args("train_iters=150", "eval_interval=50", "eval_iters=1", "save_interval=50"),
				command.Streams{Out: &primustest.Buffer{}, Err: stderr, Width: func() int { return width }})
			require.Zero(t, code, stderr.String())
			var s screen
			s.feed(stderr.String())

			logLine := regexp.MustCompile(`^\d\d:\d\d:\d\d (INFO |WARN ) \S`)
			steps := 0
			for _, line := range s.lines[:len(s.lines)-1] {
				assert.Regexp(t, logLine, string(line), "the bar tears no line")
				assert.NotContains(t, string(line), "█")
				if strings.Contains(string(line), "grad norm") {
					steps++
				}
			}
			assert.Empty(t, string(s.last()), "the bar is gone in the end")
			assert.Equal(t, 3, steps, "a line for each evaluation; the others are in the log file")
			bars := 0
			for _, frame := range s.frames {
				if frame != "" && !logLine.MatchString(frame) {
					bars++
					assert.Less(t, len([]rune(frame)), width, frame)
				}
			}
			if width > 1 {
				assert.Positive(t, bars)
			}
			if width == 120 {
				assert.Contains(t, strings.Join(s.frames, "\n"), "100% ████████████████████████ 150/150  loss ")
			}
		})
	}
}
