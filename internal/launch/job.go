package launch

import "github.com/primus-fl/primus/internal/secret"

// Job says how a framework is started.
type Job struct {
	Program    []string // arguments of python3: "-m", "torchtitan.train", …
	PerDevice  bool     // a process for each device of a node, as torchrun starts them; else one for the node
	PythonPath []string // directories that Python searches for modules first
	Env        []Variable
	Files      []File
	Dir        string   // the working directory, "" for that of this process
	LogDir     string   // directory of the files with the output of each rank
	Notes      []string // what a user should know about the translation of the experiment
}

// Variable is a variable of the environment of the processes.
type Variable struct {
	Name, Value string
	Source      string // who set it
}

// Shown returns the value as it may be printed: asterisks for a secret.
func (v Variable) Shown() string { return secret.Shown(v.Name, v.Value) }

// File is a file that the processes read.
type File struct {
	Path      string
	Content   string
	Temporary bool // removed when the processes have ended
}
