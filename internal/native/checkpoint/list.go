package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/internal/durable"
)

const dirPrefix = "step-"

var dirPattern = regexp.MustCompile(`^step-(\d{8,18})$`)

func dirName(step int64) string { return fmt.Sprintf("%s%08d", dirPrefix, step) }

// parseDirName returns the step of a complete checkpoint's directory name.
func parseDirName(name string) (int64, bool) {
	match := dirPattern.FindStringSubmatch(name)
	if match == nil {
		return 0, false
	}
	step, err := strconv.ParseInt(match[1], 10, 64)
	return step, err == nil && dirName(step) == name
}

// found is a directory with the name and at least some files of a checkpoint.
type found struct {
	path     string
	step     int64
	sequence uint64
	run      string // the run that saved it
	files    []manifestFile
	mark     Mark
	link     bool  // a symbolic link, which may point to a checkpoint of another run
	err      error // why its manifest cannot be used, nil if it can
}

// list returns the checkpoints of a Store's directory, newest first. The order of saving of a
// checkpoint without a usable manifest is unknown; it comes before the first checkpoint with a
// lower step. A directory that has neither a manifest nor tensors is not a checkpoint. A directory
// that does not exist has no checkpoints.
func list(dir string) ([]found, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", durable.Explain(err))
	}
	var good, bad []found
	for _, e := range entries {
		f, ok := look(dir, e)
		switch {
		case !ok:
		case f.err != nil:
			bad = append(bad, f)
		default:
			good = append(good, f)
		}
	}
	slices.SortFunc(good, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.sequence, a.sequence), cmp.Compare(b.step, a.step))
	})
	for _, b := range bad {
		at := slices.IndexFunc(good, func(g found) bool { return g.step < b.step })
		if at < 0 {
			at = len(good)
		}
		good = slices.Insert(good, at, b)
	}
	return good, nil
}

// look reads the manifest of an entry of a Store's directory, and reports whether the entry is a
// checkpoint.
func look(dir string, e fs.DirEntry) (found, bool) {
	step, ok := parseDirName(e.Name())
	f := found{path: filepath.Join(dir, e.Name()), step: step, link: e.Type()&fs.ModeSymlink != 0}
	if !ok || !e.IsDir() && !f.link {
		return f, false
	}
	info, err := os.Stat(f.path)
	if err != nil {
		f.err = &UnreadableError{Path: f.path, Err: err}
		return f, true
	}
	if !info.IsDir() {
		return f, false
	}
	m, err := readManifest(f.path)
	if err != nil {
		f.err = err
		return f, !isForeign(f.path)
	}
	f.sequence, f.run, f.files, f.mark = m.Sequence, m.Run, m.Files, m.mark()
	return f, true
}

// isForeign reports whether a directory has neither a manifest nor tensors, so that it is not a
// checkpoint.
func isForeign(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == manifestName || filepath.Ext(e.Name()) == ".safetensors"
	})
}
