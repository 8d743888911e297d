package config

import "sync"

// Cache keeps the files of preset roots between loads, so that many experiments read a preset once. All loads that share
// a cache must have the same [Options.Presets] and [Options.Env]; changes of the files on disk are not seen. The zero Cache
// is empty. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	files map[location]source
}

// source is one file after substitution and before what it extends.
type source struct {
	document *Map
	report   Report
}

// lookup finds a file. A nil cache has none.
func (c *Cache) lookup(f location) (source, bool) {
	if c == nil || f.root == experimentRoot {
		return source{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.files[f]
	return s, ok
}

// keep remembers a file. A nil cache forgets it.
func (c *Cache) keep(f location, s source) {
	if c == nil || f.root == experimentRoot {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[location]source{}
	}
	c.files[f] = s
}
