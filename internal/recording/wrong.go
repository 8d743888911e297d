package recording

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/opmanager"
)

// Bounds of the wrong calls that are kept in a directory.
const (
	MaxWrongBytes   = 256 << 20 // of all files
	MaxWrongPerImpl = 2         // files for each op and impl
)

// WrongCalls keeps calls whose results verification found wrong, each in a file. It logs what it
// cannot keep, and nothing else fails because of that.
type WrongCalls struct {
	log *slog.Logger

	mu     sync.Mutex
	dir    string // "" keeps nothing
	step   int
	warned map[string]bool
}

// NewWrongCalls returns a WrongCalls that keeps nothing yet.
func NewWrongCalls(log *slog.Logger) *WrongCalls {
	return &WrongCalls{log: log, step: 1, warned: map[string]bool{}}
}

// SetDir says where calls are kept from now on. The directory is created for the first of them.
func (w *WrongCalls) SetDir(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dir = dir
}

// SetStep says which step the calls that follow belong to.
func (w *WrongCalls) SetStep(step int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step = step
}

// Keep writes a wrong call to a file and returns its name, "" if there is none. It is for
// opmanager.Manager.KeepWrong.
func (w *WrongCalls) Keep(e opmanager.VerificationFailed) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return ""
	}
	file, err := w.keep(e)
	if err == nil {
		return file
	}
	if text := durable.Explain(err).Error(); !w.warned[text] && len(w.warned) < maxWarned {
		w.warned[text] = true
		w.log.Warn(fmt.Sprintf("a wrong call of op '%s' on '%s' is not kept: %s", e.Op, e.Impl.ID, text))
	}
	return ""
}

// maxWarned bounds the warnings about calls that are not kept.
const maxWarned = 16

func (w *WrongCalls) keep(e opmanager.VerificationFailed) (string, error) {
	c, err := takeWrong(e, w.step)
	if err != nil {
		return "", err
	}
	used, err := w.used()
	if err != nil {
		return "", err
	}
	if used+c.Bytes() > MaxWrongBytes {
		return "", fmt.Errorf("%s has %d bytes of wrong calls, it would take %d more, and the limit is %d: remove files that are not needed", w.dir, used, c.Bytes(), MaxWrongBytes)
	}
	for n := range MaxWrongPerImpl {
		c.File = filepath.Join(w.dir, fmt.Sprintf("%s-%s-%d%s", e.Op, fileWord(e.Impl.ID), n+1, Extension))
		if _, err := os.Lstat(c.File); errors.Is(err, os.ErrNotExist) {
			return c.File, c.Write(c.File)
		}
	}
	return "", fmt.Errorf("%s has %d of this op and impl already: remove files that are not needed", w.dir, MaxWrongPerImpl)
}

// used creates the directory and returns the size of the files in it.
func (w *WrongCalls) used() (n int64, err error) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(w.dir)
	for _, entry := range entries {
		if info, infoErr := entry.Info(); infoErr == nil {
			n += info.Size()
		}
	}
	return n, err
}

// fileWord returns an id as a part of the name of a file.
func fileWord(id string) string {
	word := []byte(id)
	for i, c := range word {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' {
			word[i] = '_'
		}
	}
	return string(word)
}

// takeWrong copies a call whose result was wrong, with that result.
func takeWrong(e opmanager.VerificationFailed, step int) (*Call, error) {
	op := e.Call.Op
	if err := Recordable(op); err != nil {
		return nil, err
	}
	site := Site{Step: step, Number: int(e.Number), Layer: e.Call.Layer, Phase: e.Call.Phase}
	c := &Call{Op: op, header: header{Format: formatName, Op: op.Name(), Site: site, Why: e.Error(), Primus: buildinfo.Version(), Machine: cpufeat.Class(true)}}
	if saved := e.Call.Args.Saved(); saved != nil && !op.Forward() {
		c.header.Owner = saved.Owner()
	}
	views, names := viewsOf(e.Result, e.Call.Args)
	if e.UnexpectedWrite != "" {
		c.Wrote = fmt.Sprintf("operand %q %s", e.Operand, e.UnexpectedWrite)
	}
	_, args := e.Call.Args.Clone()
	c.Views = views
	var err error
	if c.Args, err = encodeArguments(op, args, names); err != nil {
		return nil, err
	}
	return c, c.end(e.Result, e.Impl, nil)
}
