// Package megatronargs knows the arguments of Megatron-LM: their names and the defaults of its own
// parser.
package megatronargs

import (
	_ "embed"
	"encoding/json"
	"math"
	"strings"
	"sync"
)

// Version is that of Megatron-LM whose arguments these are.
const Version = "0.16"

// text has a name and a JSON value per line.
//
//go:embed defaults.tsv
var text string

// Defaults returns the default of each argument: nil, a bool, an int64, a float64, a string or a
// list of these. The map is shared and must not be changed.
var Defaults = sync.OnceValue(func() map[string]any {
	defaults := map[string]any{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			panic("BUG: default of " + name + ": " + err.Error())
		}
		if n, ok := v.(float64); ok && n == math.Trunc(n) && !strings.ContainsAny(value, ".e") {
			v = int64(n)
		}
		defaults[name] = v
	}
	return defaults
})
