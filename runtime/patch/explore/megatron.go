package explore

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/primus-fl/primus/runtime/patch/pyeval"
	"github.com/primus-fl/primus/runtime/patch/pysource"
)

// megatronDefaults are the arguments of Megatron-LM 0.16 with their defaults, as its own parser gives them: a name and a JSON
// value a line.
//
//go:embed megatron_defaults.tsv
var megatronDefaults string

var defaultsOfMegatron = sync.OnceValue(func() map[string]any {
	defaults := map[string]any{}
	for line := range strings.Lines(megatronDefaults) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic("BUG: default of " + name + ": " + err.Error())
		}
		if n, ok := v.(float64); ok && n == math.Trunc(n) && !strings.ContainsAny(text, ".e") {
			v = int64(n)
		}
		defaults[name] = v
	}
	return defaults
})

// withDefaults returns the parameters that conditions of a phase see: from the phase setup on, those that the framework adds are
// among them. They are known for Megatron; other frameworks add none that patches ask for and that are set.
func withDefaults(run Run, phase string) map[string]any {
	if run.Backend != "megatron" || phase == "build_args" {
		return run.Params
	}
	params := maps.Clone(defaultsOfMegatron())
	maps.Copy(params, run.Params)
	return params
}

// FrameworkVersion returns the version that the source tree of a framework below a folder states. The error is fs.ErrNotExist
// where there is no such tree.
func FrameworkVersion(dir, framework string) (string, error) {
	file, ok := map[string]string{
		"megatron":        "Megatron-LM/megatron/core/package_info.py",
		"megatron_bridge": "Megatron-Bridge/src/megatron/bridge/package_info.py",
	}[framework]
	if !ok {
		return "", fs.ErrNotExist
	}
	parsed, err := pyeval.New(os.DirFS(dir)).Parse(file)
	if err != nil {
		return "", err
	}
	constants := map[string]string{}
	for _, s := range parsed.Body {
		assign, ok := s.(*pysource.Assign)
		if !ok {
			continue
		}
		if c, ok := assign.Value.(*pysource.Constant); ok {
			text, isText := c.Value.(string)
			if !isText {
				text = pyeval.Repr(pyeval.Const{V: c.Value})
			}
			constants[parsed.Source(assign.Targets[0])] = text
		}
	}
	if constants["MAJOR"] == "" || constants["MINOR"] == "" || constants["PATCH"] == "" {
		return "", fmt.Errorf("%s: it states no MAJOR, MINOR and PATCH", file)
	}
	return constants["MAJOR"] + "." + constants["MINOR"] + "." + constants["PATCH"] + constants["PRE_RELEASE"], nil
}
