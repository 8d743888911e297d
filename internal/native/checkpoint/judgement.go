package checkpoint

import (
	"cmp"
	"slices"
)

// Judgement says how the training that led to a checkpoint was judged when it was saved.
type Judgement string

// The judgements. A checkpoint of a version of this program that judged nothing has none, and
// counts as good.
const (
	Good     Judgement = "good"
	Spike    Judgement = "spike"    // an update from a spike is among the last ones
	Diverged Judgement = "diverged" // the loss does not come back
)

// Mark is what a save says of the weights.
type Mark struct {
	Judgement Judgement
	ValidLoss *float64 // of these weights; nil if they were not evaluated
}

func (m Mark) good() bool { return m.Judgement == Good || m.Judgement == "" }

// Mark says how the weights are judged.
func (w *Writer) Mark(m Mark) { w.mark = m }

// Mark returns what the save said of the weights.
func (c *Checkpoint) Mark() Mark { return c.manifest.mark() }

func (m manifest) mark() Mark { return Mark{m.Judgement, m.ValidLoss} }

// LastGood returns the newest intact checkpoint of the run that was judged good. Damaged ones are
// skipped with a warning. The error matches ErrNone if there is none.
func (s *Store) LastGood() (*Checkpoint, []string, error) {
	return s.newest(func(f found) bool { return f.err == nil && f.mark.good() && f.run == s.run && !f.link })
}

// kept chooses the checkpoints of the run that stay, of all of them, newest first: the newest ones,
// those of every so many steps, those with the lowest validation losses, and the last one that was
// judged good.
func (s *Store) kept(own []found) map[string]bool {
	stay := map[string]bool{}
	for i, f := range own {
		if i < s.set.Keep || s.set.KeepEvery > 0 && f.step%s.set.KeepEvery == 0 {
			stay[f.path] = true
		}
	}
	if at := slices.IndexFunc(own, func(f found) bool { return f.mark.good() }); at >= 0 {
		stay[own[at].path] = true
	}
	evaluated := slices.DeleteFunc(slices.Clone(own), func(f found) bool { return f.mark.ValidLoss == nil })
	slices.SortStableFunc(evaluated, func(a, b found) int { return cmp.Compare(*a.mark.ValidLoss, *b.mark.ValidLoss) })
	for _, f := range evaluated[:min(s.set.KeepBest, len(evaluated))] {
		stay[f.path] = true
	}
	return stay
}

// Entry describes a checkpoint in the directory of a Store.
type Entry struct {
	Step  int64
	Path  string
	Run   string // the run that saved it
	Bytes int64  // of its files, without the manifest
	Mark
	Err error // why it cannot be used, as far as the manifest says; nil if it can
}

// List returns the checkpoints in the directory of a Store, newest first. It reads their manifests
// only.
func List(dir string) ([]Entry, error) {
	all, err := list(dir)
	entries := make([]Entry, len(all))
	for i, f := range all {
		entries[i] = Entry{Step: f.step, Path: f.path, Run: f.run, Mark: f.mark, Err: f.err}
		for _, file := range f.files {
			entries[i].Bytes += file.Size
		}
	}
	return entries, err
}
