//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// half is the number of steps of the first half of a run that is attacked between two processes.
const half = steps / 2

// damages are ways to damage a file of the newest checkpoint. A run passes over a damaged
// checkpoint; one that it cannot read or understand ends the run until that is undone.
var damages = []struct {
	name   string
	passed bool // the run passes over the checkpoint
	do     func(file string, random *rand.Rand) error
}{
	{"truncated", true, func(file string, random *rand.Rand) error {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		return os.Truncate(file, random.Int64N(info.Size()))
	}},
	{"changed", true, func(file string, random *rand.Rand) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text[random.IntN(len(text))] ^= 1 << random.IntN(8)
		return os.WriteFile(file, text, 0o644)
	}},
	{"missing", true, func(file string, _ *rand.Rand) error { return os.Remove(file) }},
	{"FIFO", true, func(file string, _ *rand.Rand) error {
		return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o644))
	}},
	{"newer", false, func(file string, _ *rand.Rand) error {
		file = filepath.Join(filepath.Dir(file), "checkpoint.json")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, bytes.Replace(text, []byte(`"version": `), []byte(`"version": 9`), 1), 0o644)
	}},
	{"loop of links", false, func(file string, _ *rand.Rand) error {
		return errors.Join(os.Remove(file), os.Symlink(filepath.Base(file), file))
	}},
}

// checkpointFiles are the files of a checkpoint that training needs.
var checkpointFiles = []string{"model.safetensors", "optimizer.safetensors", "trainer_state.json", "checkpoint.json"}

// damage damages the newest checkpoint between two halves of a run, next to a directory that only
// looks like a checkpoint.
func damage(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	p, err := l.once(ctx, fmt.Sprint("train_iters=", half))
	switch {
	case err != nil:
		return 0, err
	case p.Code() != 0:
		return 0, fmt.Errorf("the first half: exit code %d\n%s", p.Code(), p.Tail())
	}
	precious := l.checkpoint(5, "precious.bin")
	if err := errors.Join(os.MkdirAll(filepath.Dir(precious), 0o755), os.WriteFile(precious, []byte("mine"), 0o644)); err != nil {
		return 0, err
	}
	d := damages[random.IntN(len(damages))]
	name := checkpointFiles[random.IntN(len(checkpointFiles))]
	aside := filepath.Join(l.dir, "aside")
	if err := os.CopyFS(aside, os.DirFS(l.checkpoint(half))); err != nil {
		return 0, err
	}
	if err := d.do(l.checkpoint(half, name), random); err != nil {
		return 0, err
	}
	if err := l.survives(ctx, d.passed, aside); err != nil {
		return 1, fmt.Errorf("%s is %s: %w", name, d.name, err)
	}
	if _, err := os.Stat(precious); err != nil {
		return 1, fmt.Errorf("a file that no run had written is gone: %w", err)
	}
	return 1, nil
}

// survives lets the run continue next to a damaged checkpoint, of which aside is an intact copy.
func (l *lab) survives(ctx context.Context, passed bool, aside string) error {
	if passed {
		return l.goesOn(ctx)
	}
	p, err := l.once(ctx)
	switch {
	case err != nil:
		return err
	case p.Code() != 1:
		return fmt.Errorf("exit code %d, want 1: the run must not start over\n%s", p.Code(), p.Tail())
	}
	if _, err := os.Lstat(l.checkpoint(half)); err != nil {
		return fmt.Errorf("the checkpoint was removed: %w", err)
	}
	if err := os.RemoveAll(l.checkpoint(half)); err != nil {
		return err
	}
	if err := os.CopyFS(l.checkpoint(half), os.DirFS(aside)); err != nil {
		return err
	}
	return l.goesOn(ctx)
}
