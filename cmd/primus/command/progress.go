package command

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/schollz/progressbar/v3"
)

// progress shows a run on the terminal: a bar, or plain lines where there is no terminal, and a summary at the end.
type progress struct {
	streams Streams
	console *console
	log     *slog.Logger // receives the lines
	bar     bool
	manager *opmanager.Manager

	run     backend.Run
	current *progressbar.ProgressBar
	started time.Time
}

// RunStarted shows the bar.
func (p *progress) RunStarted(r backend.Run) {
	p.run, p.started = r, time.Now()
	if !p.bar {
		return
	}
	p.current = progressbar.NewOptions(r.Steps,
		progressbar.OptionSetWriter(p.console.out),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	p.console.setBar(p.current)
	_ = p.current.Set(r.FirstStep - 1)
}

// StepDone moves the bar and writes a line every log_interval steps.
func (p *progress) StepDone(s backend.Step) {
	if p.current != nil {
		p.console.mu.Lock()
		p.current.Describe(fmt.Sprintf("loss %.3f  %s tok/s", s.Loss, thousands(s.TokensPerSecond)))
		_ = p.current.Set(s.Step)
		p.console.mu.Unlock()
	}
	if s.Step%max(p.run.LogInterval, 1) == 0 || s.Step == p.run.FirstStep || s.Step == p.run.Steps || s.ValidLoss != nil {
		p.log.Info(p.line(s))
	}
}

func (p *progress) line(s backend.Step) string {
	line := fmt.Sprintf("step %d/%d  loss %.4f", s.Step, p.run.Steps, s.Loss)
	if s.ValidLoss != nil {
		line += fmt.Sprintf("  valid %.4f", *s.ValidLoss)
	}
	line += fmt.Sprintf("  lr %.2e  grad norm %.3f  %s tokens/s", s.LR, s.GradNorm, thousands(s.TokensPerSecond))
	if done := s.Step - p.run.FirstStep + 1; s.Step < p.run.Steps {
		left := time.Since(p.started) / time.Duration(done) * time.Duration(p.run.Steps-s.Step)
		line += fmt.Sprintf("  eta %s", left.Round(time.Second))
	}
	return line
}

// RunEnded removes the bar and prints the summary.
func (p *progress) RunEnded(r backend.Result) {
	if p.current != nil {
		p.console.setBar(nil)
		_ = p.current.Clear()
	}
	printSummary(p.streams.Out, r, p.manager.Stats())
}

// thousands writes a number as 12.3k from ten thousand on.
func thousands(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%.1fk", v/1000)
	}
	return fmt.Sprintf("%.0f", v)
}

var _ backend.Observer = (*progress)(nil)
