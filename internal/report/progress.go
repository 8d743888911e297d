package report

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/runtime/backend"
)

// Screen says where a Progress shows a run.
type Screen struct {
	// SetStatus replaces the line at the bottom of the terminal; "" removes it. nil says that there is
	// no terminal.
	SetStatus func(line string)
	Width     func() int   // the columns of the terminal
	Height    func() int   // its lines
	Log       *slog.Logger // to the terminal and the log file
	FileLog   *slog.Logger // to the log file only
	Out       io.Writer    // of the summary

	// Plot draws the losses in so many columns and lines, above the bar and before the summary; nil
	// draws none.
	Plot  func(columns, lines int, color bool) string
	Color bool // the terminal shows colours
}

// Progress is an observer that shows a run. A terminal has a bar and a line for each evaluation;
// without one there is a line every log_interval steps. The summary follows at the end.
type Progress struct {
	Screen

	run     backend.Run
	started time.Time
	drawn   time.Time       // when the bar was drawn last
	valid   *float64        // of the last evaluation
	rate    float64         // tokens per second, averaged over rateWindow
	slow    map[string]bool // ops that made a step slow, once they are in the log
	err     error           // of writing the summary
}

// NewProgress returns an observer of one run.
func NewProgress(s Screen) *Progress { return &Progress{Screen: s} }

// Err returns the error of writing the summary.
func (p *Progress) Err() error { return p.err }

// redraw is the shortest time between two drawings of the bar.
const redraw = 100 * time.Millisecond

// RunStarted shows an empty bar.
func (p *Progress) RunStarted(r backend.Run) {
	p.run, p.started, p.slow = r, time.Now(), map[string]bool{}
	if r.FirstStep <= r.Steps {
		p.draw(r.FirstStep-1, "")
	}
}

// StepDone moves the bar and writes the lines that are due.
func (p *Progress) StepDone(s backend.Step) {
	if s.Steps > 0 {
		p.run.Steps = s.Steps
	}
	if s.ValidLoss != nil {
		p.valid = s.ValidLoss
	}
	for _, cost := range s.Reference {
		if !p.slow[cost.Op] {
			p.slow[cost.Op] = true
			p.Log.Warn(fmt.Sprintf("step %d is slow: %s", s.Step, cost))
		}
	}
	p.average(s)
	if s.Step%max(p.run.LogInterval, 1) == 0 || s.Step == p.run.FirstStep || s.Step == p.run.Steps || s.ValidLoss != nil {
		log := p.Log
		if p.SetStatus != nil && s.ValidLoss == nil {
			log = p.FileLog
		}
		log.Info(p.line(s))
	}
	if time.Since(p.drawn) >= redraw || s.Step == p.run.Steps {
		p.draw(s.Step, p.figures(s))
	}
}

// line is what the log says about a step.
func (p *Progress) line(s backend.Step) string {
	line := fmt.Sprintf("step %s  loss %.4f", of(s.Step, p.run.Steps), s.Loss)
	if s.CrossEntropy != nil {
		line += fmt.Sprintf("  cross entropy %.4f", *s.CrossEntropy)
	}
	if s.ValidLoss != nil {
		line += fmt.Sprintf("  valid %.4f", *s.ValidLoss)
	}
	line += fmt.Sprintf("  lr %.2e  grad norm %.3f  %s tokens/s", s.LR, s.GradNorm, thousands(s.TokensPerSecond))
	if s.TFLOPSPerDevice > 0 {
		line += fmt.Sprintf("  %.1f TFLOP/s per device", s.TFLOPSPerDevice)
	}
	if s.MemoryBytes > 0 {
		line += "  " + sysmem.Text(float64(s.MemoryBytes)) + " per device"
	}
	return line + p.eta(s.Step)
}

// of writes how far a run is, without the last step where that is unknown.
func of(step, steps int) string {
	if steps == 0 {
		return strconv.Itoa(step)
	}
	return fmt.Sprintf("%d/%d", step, steps)
}

// rateWindow is the time over which the rate beside the bar is averaged.
const rateWindow = 3 * time.Second

// average counts the rate of a step by its share of the window.
func (p *Progress) average(s backend.Step) {
	if p.rate == 0 {
		p.rate = s.TokensPerSecond
	}
	p.rate += (s.TokensPerSecond - p.rate) * (1 - math.Exp(-s.Duration.Seconds()/rateWindow.Seconds()))
}

// figures is what stands beside the bar after a step, with the columns that change often of one
// width.
func (p *Progress) figures(s backend.Step) string {
	text := fmt.Sprintf("  loss %.3f", s.Loss)
	if p.valid != nil {
		text += fmt.Sprintf("  valid %.3f", *p.valid)
	}
	return text + fmt.Sprintf("  %5s tok/s%s", thousands(p.rate), p.eta(s.Step))
}

// eta is the time that the steps left will take if they are as fast as those of this run,
// evaluations and checkpoints included.
func (p *Progress) eta(step int) string {
	done := step - p.run.FirstStep + 1
	if step >= p.run.Steps || done <= 0 {
		return ""
	}
	left := time.Since(p.started) / time.Duration(done) * time.Duration(p.run.Steps-step)
	return "  eta " + left.Round(time.Second).String()
}

// Lengths of the bar: what it has when the terminal has room, and the least that is worth showing.
const (
	maxBar = 24
	minBar = 4
)

// Lines of a plot, and of the terminal that are left for the log above it and the bar.
const (
	plotLines  = 14
	aroundPlot = 6
)

// usualWidth is that of a plot without a terminal.
const usualWidth = 80

// draw shows the bar with the steps done, below the plot if there is one.
func (p *Progress) draw(step int, figures string) {
	if p.SetStatus == nil {
		return
	}
	p.drawn = time.Now()
	status := p.bar(step, figures)
	if p.Plot != nil {
		lines := plotLines
		if p.Height != nil {
			lines = min(lines, p.Height()-aroundPlot)
		}
		if plot := p.Plot(p.Width()-1, lines, p.Color); plot != "" {
			status = plot + "\n" + status
		}
	}
	p.SetStatus(status)
}

// bar is the line at the bottom with the steps done.
func (p *Progress) bar(step int, figures string) string {
	if p.run.Steps == 0 {
		return of(step, 0) + figures
	}
	steps := max(p.run.Steps, step)
	head := fmt.Sprintf("%3d%% ", 100*step/steps) // 100 only at the end
	tail := fmt.Sprintf(" %*d/%d%s", len(strconv.Itoa(steps)), step, p.run.Steps, figures)
	length := min(maxBar, p.Width()-1-len(head)-len(tail))
	if length < minBar {
		return head + strings.TrimPrefix(tail, " ")
	}
	filled := step * length / steps
	return head + strings.Repeat("█", filled) + strings.Repeat("░", length-filled) + tail
}

// RunEnded removes the bar and prints the plot and the summary.
func (p *Progress) RunEnded(r backend.Result) {
	width := usualWidth
	if p.SetStatus != nil {
		p.SetStatus("")
		width = p.Width()
	}
	if p.Plot != nil {
		if plot := p.Plot(width-1, plotLines, false); plot != "" {
			if _, p.err = fmt.Fprintf(p.Out, "\n%s\n", plot); p.err != nil {
				return
			}
		}
	}
	p.err = Summary(p.Out, r)
}

// thousands writes a number as 12.3k from ten thousand on, and as 12.3M from ten million on.
func thousands(v float64) string {
	switch {
	case v >= 10e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 10e3:
		return fmt.Sprintf("%.1fk", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

var _ backend.Observer = (*Progress)(nil)
