package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/launch"
)

// The names of the commands of Slurm that start jobs.
const (
	sbatch = "sbatch"
	srun   = "srun"
)

// slurm plans a job in which primus runs once on each node. Inside of an allocation it is a step of
// that.
func (r *Run) slurm(s *Settings, rest string) (*Plan, error) {
	p := &Plan{Launcher: launch.Slurm, Unset: ofThisNode}
	vars, names := assignments(s.Slurm.Env, "launcher file")
	p.Env = append(vars, settingsOff)
	for _, name := range names {
		if !r.isSet(name) {
			p.Notes = append(p.Notes, fmt.Sprintf("variable %s of slurm.env is not set here; the job gets the whole environment", name))
		}
	}
	if list, ok := s.option("ntasks-per-node"); ok && list != "1" {
		return nil, s.fault("slurm.ntasks-per-node", "given %s, want 1: primus runs once on each node and starts the processes there itself", list)
	}
	_, inside := r.Lookup("SLURM_JOB_ID")
	command := s.Slurm.Command
	if command == "" {
		if command = sbatch; inside {
			command = srun
		}
	}
	kill := "--kill-on-bad-exit=1"
	if r.restarts() {
		kill = "--kill-on-bad-exit=0" // the other nodes go on without one that is gone
	}
	step := []string{srun, "--nodes=" + strconv.Itoa(r.Nodes), "--ntasks-per-node=1", kill, "--cpu-bind=none"}
	var settings []string
	if strings.Contains(rest, ",") {
		settings = s.flags()
	}
	work := r.args(r.Program, rest, settings...)
	if command == srun {
		p.Argv = step
		if inside {
			p.Notes = append(p.Notes, "the allocation has the options of slurm in the launcher file; they are not used again")
		} else {
			p.Argv = append(p.Argv, "--job-name="+r.Name, "--chdir="+r.Dir)
			for _, o := range s.Slurm.Options {
				p.Argv = append(p.Argv, o.Words()...)
			}
		}
		p.Argv = append(p.Argv, work...)
		return p, nil
	}
	script := r.file("slurm.sh")
	p.Files = []launch.File{{Path: script, Content: r.script(s, step, work)}}
	p.Argv = []string{sbatch, script}
	return p, nil
}

// restarts reports whether primus starts ranks again after a failure.
func (r *Run) restarts() bool {
	return slices.ContainsFunc(r.Flags, func(f Flag) bool { return f.Name == "max-restarts" && f.Value != "0" })
}

// option returns the text of an option of sbatch.
func (s *Settings) option(name string) (string, bool) {
	for _, o := range s.Slurm.Options {
		if o.Name == name && len(o.Values) == 1 {
			return o.Values[0], true
		}
	}
	return "", false
}

// script is what sbatch runs on the first node.
func (r *Run) script(s *Settings, step, work []string) string {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	directive := func(words ...string) {
		for _, word := range words {
			b.WriteString("#SBATCH " + launch.Quote(word) + "\n")
		}
	}
	given := map[string]bool{}
	for _, o := range s.Slurm.Options {
		given[o.Name] = true
	}
	for _, d := range [][2]string{
		{"job-name", r.Name}, {"nodes", strconv.Itoa(r.Nodes)}, {"ntasks-per-node", "1"}, {"chdir", r.Dir}, {"output", r.file("slurm-%j.out")},
	} {
		if !given[d[0]] {
			directive("--" + d[0] + "=" + d[1])
		}
	}
	for _, o := range s.Slurm.Options {
		directive(o.Words()...)
	}
	b.WriteString("\n")
	for _, line := range s.Slurm.Setup {
		b.WriteString(line + "\n")
	}
	b.WriteString("unset " + strings.Join(ofThisNode, " ") + "\n")
	b.WriteString("exec " + quoted(step) + " \\\n  " + quoted(work) + "\n")
	return b.String()
}

func quoted(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = launch.Quote(word)
	}
	return strings.Join(all, " ")
}

// flags returns the flags that give the next launcher its settings.
func (s *Settings) flags() []string {
	var flags []string
	if s.file != "" {
		flags = append(flags, "--launcher-file="+s.file)
	}
	for _, o := range s.given {
		flags = append(flags, "--launcher-option="+o)
	}
	return flags
}
