package pyreader

import "github.com/primus-fl/primus/internal/pyreader/internal/eval"

// Record is what is known about one registration of a patch.
type Record struct {
	ID              string     `json:"id"`
	Backend         string     `json:"backend"` // empty means any
	Phase           string     `json:"phase"`   // empty means any
	Priority        int        `json:"priority"`
	BackendVersions []string   `json:"backend_versions"`
	PrimusVersions  []string   `json:"primus_versions"`
	Tags            []string   `json:"tags"`
	Description     string     `json:"description"`
	File            string     `json:"file"` // below the root of the checkout
	Line            int        `json:"line"` // of the handler
	DecoratorLine   int        `json:"decorator_line"`
	Handler         string     `json:"handler"`
	BackendDir      string     `json:"backend_dir"`
	Group           string     `json:"group"`
	Styles          []Style    `json:"styles"`
	Symbols         []string   `json:"symbols"`
	Condition       *Condition `json:"condition"` // nil for always
	Effective       bool       `json:"effective"` // no later registration has the same id
	Index           int        `json:"registration_index"`
	Effects         []Effect   `json:"effects"`
	Doc             string     `json:"doc,omitempty"`
	Unknown         []string   `json:"unknown,omitempty"` // what cannot be known from the source
}

// Style is a way in which a patch changes something.
type Style string

// The styles.
const (
	Replace   Style = "binding-replace"
	Wrap      Style = "function-wrap"
	Rewrite   Style = "source-rewrite"
	Mutate    Style = "mutation"
	Item      Style = "registry-item"
	Modules   Style = "sys.modules"
	Arg       Style = "arg-rewrite"
	Env       Style = "env-var"
	Lifecycle Style = "lifecycle"
)

// styles are in the order in which they are listed.
var styles = []Style{Arg, Replace, Env, Wrap, Lifecycle, Mutate, Item, Rewrite, Modules}

// Effect is one change that a handler makes.
type Effect struct {
	Kind        string      `json:"kind"` // rebind, item, sys.modules, mutate, delete, arg, env, marker, stash, primus
	Target      string      `json:"target"`
	Style       Style       `json:"style,omitempty"`
	By          string      `json:"by,omitempty"` // what is installed
	File        string      `json:"file"`
	Line        int         `json:"line"`
	Alternative bool        `json:"alternative,omitempty"` // only if something failed before
	Anchors     [][2]string `json:"anchors,omitempty"`     // of a rewrite of source: the text to replace and its replacement

	function *eval.Function // the function that is installed, if it is one
}

// Condition is when a patch applies.
type Condition struct {
	Kind   string   `json:"kind"` // lambda, name
	Keys   []string `json:"keys"` // parameters that it reads
	Env    []string `json:"env"`  // variables that it reads
	Always bool     `json:"always"`
	Static bool     `json:"static"` // parameters, variables and versions are enough to decide it
	Source string   `json:"source"`
	Words  string   `json:"words"`
	Probes []string `json:"probes,omitempty"` // what else it reads: libraries, the machine
	Doc    string   `json:"doc,omitempty"`    // of the function
	File   string   `json:"file,omitempty"`   // of the function
	Line   int      `json:"line,omitempty"`
}

// Disabled is a registration that is commented out.
type Disabled struct {
	ID   string `json:"id"`
	File string `json:"file"`
	Line int    `json:"line"`
}
