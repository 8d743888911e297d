package launch

import (
	"regexp"
	"strings"
)

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

// Shown returns the value as it may be printed: stars for a secret.
func (v Variable) Shown() string {
	if v.Value != "" && Secret(v.Name) {
		return "***"
	}
	return v.Value
}

// File is a file that the processes read.
type File struct {
	Path      string
	Content   string
	Temporary bool // it is removed when the processes have ended
}

// secretName matches the names of variables and parameters whose values are not for everybody. A
// word that only contains one of these, such as TOKENIZERS or token_dispatcher, does not count.
var secretName = regexp.MustCompile(`(?i)(^|[_.-])(TOKENS?|KEY|API_?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$`)

// secretVariable matches variables that hold a secret although their last word is another one.
var secretVariable = regexp.MustCompile(`(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|(API|ACCESS|PRIVATE|SECRET)_?KEY)_`)

// Secret reports whether the value of a variable or parameter is a secret by its name.
func Secret(name string) bool {
	return secretName.MatchString(name) || name == strings.ToUpper(name) && secretVariable.MatchString(name)
}
