package native

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// nameFile holds, in the run directory, the name that the run has in its checkpoints, by which it knows them where several
// runs save.
const nameFile = "run_name"

const maxName = 1 << 10

// readName returns the name that the run in this directory has, a new one when there is none yet.
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

// takeName decides the name of the run. One that goes on from checkpoint c has that of c, or of its directory where an older
// version of this program has saved c; every other one has a new name, so that it removes no checkpoint of an earlier run.
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
