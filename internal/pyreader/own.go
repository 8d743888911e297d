package pyreader

import (
	"strconv"
	"strings"

	"github.com/primus-fl/primus/runtime/patch"
)

// Own returns patches of this program in the form of those of a checkout.
func Own(set *patch.Set) []Record {
	records := []Record{}
	for i, p := range set.All() {
		r := Record{
			ID: p.ID, Description: p.Description, Backend: p.Backend, Phase: string(p.Phase), Priority: p.Priority.Int(),
			BackendVersions: append([]string{}, p.BackendVersions...), PrimusVersions: append([]string{}, p.PrimusVersions...),
			Tags: append([]string{}, p.Tags...), BackendDir: p.Backend, Group: "(top)", Effective: true, Index: i,
		}
		file, line, _ := strings.Cut(p.Location(), ":")
		r.File = file
		r.Line, _ = strconv.Atoi(line)
		for _, symbol := range p.Symbols {
			r.Effects = append(r.Effects, ownEffect(p.Style, symbol, r.File, r.Line))
		}
		r.Symbols, r.Styles = summarise(r.Effects)
		if p.Condition.Holds != nil {
			r.Condition = &Condition{Kind: "function", Keys: append([]string{}, p.Keys...), Env: []string{}, Static: true, Source: p.Condition.Text, Words: p.Condition.Text}
		}
		records = append(records, r)
	}
	return records
}

// ownEffect returns what a patch of this program does with one of its symbols.
func ownEffect(style patch.Style, symbol, file string, line int) Effect {
	e := Effect{Kind: "rebind", Target: symbol, File: file, Line: line}
	switch style {
	case patch.Replacement:
		e.Style = Replace
	case patch.Wrapping:
		e.Style = Wrap
	}
	if name, ok := strings.CutPrefix(symbol, "arg:"); ok {
		e.Kind, e.Style, e.Target = "arg", Arg, name
	}
	if name, ok := strings.CutPrefix(symbol, "env:"); ok {
		e.Kind, e.Style, e.Target = "env", Env, name
	}
	return e
}
