package opencl

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/primus-fl/primus/internal/durable"
)

// choices are decisions that were measured on a device. They are kept in a file of the cache's
// folder, so that later runs decide alike.
type choices struct {
	mu    sync.Mutex
	known map[string]string // nil before the file is read
}

// Measures reports whether decisions can be kept and so may be measured.
func (d *Device) Measures() bool { return d.backend.options.Cache != "" }

// Choice returns what Choose kept under a name for this device and its driver; "" when there is
// nothing.
func (d *Device) Choice(name string) string {
	c := &d.choices
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readLocked(d)
	return c.known[name]
}

// Choices returns all names with their choices.
func (d *Device) Choices() map[string]string {
	c := &d.choices
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readLocked(d)
	return maps.Clone(c.known)
}

// Choose keeps a choice for this process and, in the folder of the cache, for later ones. A file
// that cannot be written costs a later process the time to measure again, so that is no error.
func (d *Device) Choose(name, value string) {
	c := &d.choices
	c.mu.Lock()
	defer c.mu.Unlock()
	mine := c.known
	c.known = nil
	c.readLocked(d) // what other processes have added
	maps.Copy(c.known, mine)
	c.known[name] = value
	file := d.choicesFile()
	if file == "" || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = durable.WriteFile(file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(c.known)
	})
}

// maxChoices bounds a file of choices, of which each takes some hundred bytes.
const maxChoices = 16 << 20

// readLocked reads the file once. One that is missing or damaged holds nothing.
func (c *choices) readLocked(d *Device) {
	if c.known != nil {
		return
	}
	c.known = make(map[string]string)
	file := d.choicesFile()
	if file == "" {
		return
	}
	content, err := durable.ReadRegular(file, maxChoices)
	if err != nil || json.Unmarshal(content, &c.known) != nil || c.known == nil {
		c.known = make(map[string]string)
	}
}

// choicesFile returns the file of the device's choices; "" without a cache.
func (d *Device) choicesFile() string {
	if !d.Measures() {
		return ""
	}
	return filepath.Join(d.backend.options.Cache, d.hash("choices")+".json")
}
