package plugin

import (
	"fmt"
	"slices"
	"sync"

	"github.com/primus-fl/primus/vendors/loader"
)

// controls records the changes of the floating-point environment that a plugin has made; each was
// undone. It lists a function once, however often it is called.
type controls struct {
	mu    sync.Mutex
	seen  map[string]bool // functions
	texts []string
}

// add records and logs what a function of the plugin has changed.
func (c *controls) add(p *Plugin, function string, change loader.Change) {
	if change.IsZero() {
		return
	}
	text := fmt.Sprintf("%s changed the floating-point environment, which was restored: %v", function, change)
	if c.record(function, text) && p.set.Log != nil {
		p.set.Log.Warn(fmt.Sprintf("plugin %s: %s", p.path, text))
	}
}

// record keeps the first text about a function and reports whether this is it.
func (c *controls) record(function, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[function] {
		return false
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[function] = true
	c.texts = append(c.texts, text)
	return true
}

func (c *controls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}
