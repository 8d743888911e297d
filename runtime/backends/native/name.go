package native

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
)

// nameFile is the file in the run directory with the name of the run in its checkpoints. By that
// name the run recognises them in a directory that several runs use.
const nameFile = "run_name"

const maxName = 1 << 10

// readName returns the name of the run in this directory, a new one if there is none.
func (t *trainer) readName() (string, error) {
	text, err := durable.ReadRegular(filepath.Join(t.location().Path(), nameFile), maxName)
	if errors.Is(err, fs.ErrNotExist) {
		return t.newName(), nil
	}
	if err != nil {
		return "", fmt.Errorf("read the name of the run: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// newName returns a name that no other run has.
func (t *trainer) newName() string {
	return fmt.Sprintf("%s-%016x", t.tc.Experiment.ExpName, rand.Uint64())
}

// takeName chooses the name of the run. A run that continues from checkpoint c takes the name in c
// or, if an older version of this program saved c, that of its directory. Other runs take a new
// name, so that they do not remove checkpoints of earlier runs.
func (t *trainer) takeName(name string, c *checkpoint.Checkpoint, goesOn bool) error {
	switch {
	case !goesOn:
		name = t.newName()
	case c.Run() != "":
		name = c.Run()
	}
	t.store.SetRun(name)
	return t.dir.WriteFile(nameFile, []byte(name+"\n"))
}
