package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/runtime/train"
)

// Launch is what training an experiment would start, or the reason why it could not.
type Launch struct {
	File      string          `json:"file"`
	Module    string          `json:"module,omitempty"`
	Framework string          `json:"framework,omitempty"`
	Trainer   string          `json:"trainer,omitempty"`
	Launcher  string          `json:"launcher,omitempty"` // empty for a framework that trains in primus
	WorldSize int             `json:"world_size,omitempty"`
	Processes []LaunchProcess `json:"processes,omitempty"` // of this node
	Files     []string        `json:"files,omitempty"`     // that the processes read
	Notes     []string        `json:"notes,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
	Problems  []string        `json:"problems,omitempty"` // the reasons why it would fail on this machine
	Error     string          `json:"error,omitempty"`    // the reason why it has no plan
}

// LaunchProcess is a process as a shell starts it, with stars in place of secrets.
type LaunchProcess struct {
	Rank    int    `json:"rank"`
	Command string `json:"command"`
}

// NewLaunch describes a plan.
func NewLaunch(p *train.Plan) Launch {
	l := Launch{File: p.Experiment.File, Module: p.Module.Name, Framework: p.Framework, Trainer: p.Trainer, WorldSize: 1, Problems: p.Problems}
	if p.Launch == nil {
		return l
	}
	l.Launcher, l.WorldSize, l.Notes = p.Launch.Launcher, p.Launch.WorldSize, p.Launch.Notes
	for _, process := range p.Launch.Processes {
		l.Processes = append(l.Processes, LaunchProcess{process.Rank, p.Launch.Shell(process)})
	}
	for _, f := range p.Launch.Files {
		l.Files = append(l.Files, f.Path)
	}
	return l
}

// Launches returns the text of what experiments would start.
func Launches(all []Launch) string {
	var b strings.Builder
	failed := 0
	for _, l := range all {
		if l.Error != "" {
			failed++
			fmt.Fprintf(&b, "%s: no plan\n  %s\n\n", l.File, strings.ReplaceAll(l.Error, "\n", "\n  "))
			continue
		}
		what := "trains in primus"
		if l.Launcher != "" {
			what = fmt.Sprintf("%s by launcher %s", plaintext.Quantity(l.WorldSize, "process", "processes"), l.Launcher)
		}
		fmt.Fprintf(&b, "%s: %s, %s, %s\n", l.File, l.Framework, l.Module, what)
		for _, p := range l.Processes {
			fmt.Fprintf(&b, "  %s\n", p.Command)
		}
		for _, problem := range slices.Concat(l.Notes, l.Problems) {
			fmt.Fprintf(&b, "  note: %s\n", strings.ReplaceAll(problem, "\n", "\n  "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s: %d with a plan, %d without\n", plaintext.Quantity(len(all), "experiment", "experiments"), len(all)-failed, failed)
	return b.String()
}
