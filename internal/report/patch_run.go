package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/runtime/backend"
)

// PatchRun holds the results of the patches in a run.
type PatchRun struct {
	Framework string                `json:"framework"`
	Versions  []backend.Version     `json:"versions"`
	Patches   []backend.PatchResult `json:"patches"`
}

// maxDispatch bounds what is read of the record of a run.
const maxDispatch = 64 << 20

// ReadPatchRun reads the results of the patches in the run of a directory.
func ReadPatchRun(dir string) (PatchRun, error) {
	path := filepath.Join(dir, rundir.DispatchName)
	text, err := durable.ReadRegular(path, maxDispatch)
	if errors.Is(err, fs.ErrNotExist) {
		return PatchRun{}, fmt.Errorf("%s: there is no %s: want the directory of a run that has ended, <workspace>/<work_group>/<user_name>/<exp_name>", dir, rundir.DispatchName)
	}
	if err != nil {
		return PatchRun{}, err
	}
	r := PatchRun{Versions: []backend.Version{}, Patches: []backend.PatchResult{}}
	if err := json.Unmarshal(text, &r); err != nil {
		return PatchRun{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Text returns for out the patches in the order in which they were decided on.
func (r PatchRun) Text(out io.Writer) string {
	var b strings.Builder
	b.WriteString("framework " + plaintext.OrUnknown(r.Framework))
	for _, v := range r.Versions {
		fmt.Fprintf(&b, ", %s %s", v.Name, v.Version)
	}
	if len(r.Patches) == 0 {
		b.WriteString("\n\nno patches\n")
		return b.String()
	}
	t := plaintext.NewTable(table.Row{"phase", "patch", "by", "result", "why"})
	for _, p := range r.Patches {
		t.AppendRow(table.Row{p.Phase, p.ID, p.By, p.Result, p.Reason})
	}
	fmt.Fprintf(&b, "\n\n%s\n", plaintext.Render(out, t))
	return b.String()
}
