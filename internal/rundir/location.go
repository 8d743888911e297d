package rundir

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Location names the directory of a run by the keys of an experiment.
type Location struct {
	Workspace string // a path, absolute or relative to the working directory
	WorkGroup string
	UserName  string
	ExpName   string
}

// Validate reports every part that is empty, and every name below the workspace
// that is not a single path element.
func (l Location) Validate() error {
	var problems error
	if l.Workspace == "" {
		problems = errors.New("rundir: workspace: given an empty path, want a directory such as ./output")
	}
	for _, part := range l.names() {
		switch {
		case part.value == "":
			problems = errors.Join(problems, fmt.Errorf("rundir: %s: given an empty name, want a name", part.key))
		case part.value == "." || part.value == ".." || strings.ContainsAny(part.value, "/\\\x00"):
			problems = errors.Join(problems, fmt.Errorf("rundir: %s: given %q, want one path element: use workspace for directories", part.key, part.value))
		}
	}
	return problems
}

// Path returns the directory of the run.
func (l Location) Path() string {
	return filepath.Join(l.Workspace, l.WorkGroup, l.UserName, l.ExpName)
}

type namedPart struct{ key, value string }

func (l Location) names() [3]namedPart {
	return [...]namedPart{
		{"work_group", l.WorkGroup},
		{"user_name", l.UserName},
		{"exp_name", l.ExpName},
	}
}
