//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// cycle is what the drills of the disk attack: a run that saves and removes old checkpoints, goes
// on in a second process, and is exported by a third one.
func (l *lab) cycle() [][]string {
	return [][]string{l.command("train_iters=4"), l.command(), l.export()}
}

func (l *lab) export() []string {
	return []string{"export", "--checkpoint", l.path(), "--format", "hf", "-o", l.exported()}
}

func (l *lab) exported() string { return filepath.Join(l.dir, "out", "model") }

// shorten makes the run of a lab short.
func (l *lab) shorten() {
	l.steps, l.args = 8, []string{"save_interval=2"}
}

// savedStep and resumedStep find the steps in what a run writes.
var (
	savedStep   = regexp.MustCompile(`saved checkpoint +step=(\d+)`)
	resumedStep = regexp.MustCompile(`resuming from checkpoint +step=(\d+)`)
)

// last returns the last step that a text names, 0 for none.
func last(pattern *regexp.Regexp, text []byte) int {
	all := pattern.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	step, _ := strconv.Atoi(string(all[len(all)-1][1])) // digits
	return step
}

// recovers lets the run go on and exports it. It must resume from a checkpoint that is not older
// than the newest one that was reported as saved.
func (l *lab) recovers(ctx context.Context, reported int) error {
	p, err := l.once(ctx)
	switch {
	case err != nil:
		return err
	case p.Code() != 0:
		return fmt.Errorf("the run does not go on: exit code %d\n%s", p.Code(), p.Tail())
	}
	if from := last(resumedStep, []byte(p.Log.String())); from < reported {
		return fmt.Errorf("the run resumes from step %d, and step %d was reported as saved\n%s", from, reported, p.Tail())
	}
	if err := l.endsAsUndisturbed(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(l.exported()); err == nil {
		return l.exportedWhole(ctx)
	}
	if err := l.exports(ctx); err != nil {
		return err
	}
	return l.exportedWhole(ctx)
}

// exports exports the run. The command must succeed.
func (l *lab) exports(ctx context.Context) error {
	p, err := l.launch(ctx, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, l.export()...) })
	if err != nil {
		return err
	}
	if code, err := p.wait(); err != nil || code != 0 {
		return errors.Join(err, fmt.Errorf("the export fails: exit code %d\n%s", code, p.Tail()))
	}
	return nil
}

// exportedWhole returns an error if the exported files are not those of an undisturbed run.
func (l *lab) exportedWhole(ctx context.Context) error {
	want, err := l.undisturbedExport(ctx)
	if err != nil {
		return err
	}
	got, err := content(l.exported())
	if err != nil {
		return err
	}
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			return fmt.Errorf("the exported %s has %d bytes that differ from those of an undisturbed run (%d bytes)", name, len(got[name]), len(want[name]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d files are exported, want %d", len(got), len(want))
	}
	return nil
}

// undisturbedExport returns the exported files of a run that nobody attacks.
func (y *yard) undisturbedExport(ctx context.Context) (map[string][]byte, error) {
	if y.wantExport != nil {
		return y.wantExport, nil
	}
	l, err := y.newLab("undisturbed-export")
	if err != nil {
		return nil, err
	}
	l.shorten()
	if err := errors.Join(l.finish(ctx), l.exports(ctx)); err != nil {
		return nil, err
	}
	y.wantExport, err = content(l.exported())
	return y.wantExport, err
}

// content returns the files below a directory.
func content(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	return files, err
}

// powerLoss records the system calls of a cycle and lets the power fail between any two of them.
func powerLoss(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	l.shorten()
	var calls []fileCall
	for _, args := range l.cycle() {
		p, err := l.observe(ctx, func(c fileCall) verdict {
			calls = append(calls, c)
			return verdict{}
		}, args...)
		if err != nil {
			return 0, err
		}
		if p.Code() != 0 {
			return 0, fmt.Errorf("%s fails when it is observed: exit code %d\n%s", args[0], p.Code(), p.Tail())
		}
	}
	if err := l.modelled(calls); err != nil {
		return 0, err
	}
	moments := []int{len(calls)}
	for range 4 {
		moments = append(moments, random.IntN(len(calls)))
	}
	if l.sweep {
		moments = nil
		for i := range len(calls) + 1 {
			moments = append(moments, i)
		}
	}
	var broken []error
	for _, n := range moments {
		seed := random.Uint64()
		if err := l.afterLoss(ctx, calls[:n], rand.New(rand.NewPCG(seed, 0))); err != nil {
			broken = append(broken, fmt.Errorf("power fails after %d of %d calls, the last of which %s: %w", n, len(calls), describe(calls[:n]), err))
			if ctx.Err() != nil || !l.sweep {
				break
			}
		}
	}
	return len(moments), errors.Join(broken...)
}

func describe(calls []fileCall) string {
	if len(calls) == 0 {
		return "is none"
	}
	c := calls[len(calls)-1]
	return fmt.Sprintf("is %s %s", c.kind, cmp.Or(c.path, string(c.data)))
}

// modelled returns an error if the model of the disk differs from the real one after all calls.
func (l *lab) modelled(calls []fileCall) error {
	d, err := l.replay(calls)
	if err != nil {
		return err
	}
	for _, top := range l.written() {
		real, err := content(filepath.Join(l.dir, top))
		if err != nil {
			return err
		}
		for name, text := range real {
			n, err := d.file(filepath.Join(l.dir, top, name))
			if err != nil {
				return err
			}
			if !bytes.Equal(n.data, text) {
				return fmt.Errorf("%s has %d bytes in the model, and %d others on the disk", name, len(n.data), len(text))
			}
		}
	}
	return nil
}

// written returns the directories of the lab that the processes of a cycle make.
func (l *lab) written() []string { return []string{"ws", "out"} }

func (l *lab) replay(calls []fileCall) (*disk, error) {
	d := newDisk(l.dir)
	for _, c := range calls {
		if err := d.apply(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.kind, err)
		}
	}
	return d, nil
}

// afterLoss lets the run go on from what a loss of power after these calls leaves.
func (l *lab) afterLoss(ctx context.Context, calls []fileCall, random *rand.Rand) error {
	d, err := l.replay(calls)
	if err != nil {
		return err
	}
	for _, top := range l.written() {
		if err := os.RemoveAll(filepath.Join(l.dir, top)); err != nil {
			return err
		}
	}
	if err := d.root.survivor(random).put(l.dir); err != nil {
		return err
	}
	reported := 0
	for _, c := range calls {
		if c.kind == callReport {
			reported = max(reported, last(savedStep, c.data))
		}
	}
	return l.recovers(ctx, reported)
}
