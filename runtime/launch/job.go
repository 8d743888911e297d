package launch

// Job is what a framework has to be started with.
type Job struct {
	Program    []string // what follows python3: "-m", "torchtitan.train", …
	PerDevice  bool     // a process for each device of a node, as torchrun starts them; else one for the node
	PythonPath []string // what comes first when Python looks for modules, in order
	Env        []Variable
	Files      []File
	Dir        string   // the working directory, "" for that of this process
	LogDir     string   // of the files with what each rank writes
	Notes      []string // what a user should know of how the values of the experiment arrive
}

// Variable is a variable of the environment of the processes.
type Variable struct {
	Name, Value string
	Source      string // who set it
}

// Shown returns the value as it may be printed: asterisks for a secret.
func (v Variable) Shown() string { return Shown(v.Name, v.Value) }

// File is a file that the processes read.
type File struct {
	Path      string
	Content   string
	Temporary bool // it is removed when the processes have ended
}
