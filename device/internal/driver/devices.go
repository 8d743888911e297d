package driver

import "sync"

// Devices holds the current device of each OS thread for which it is not the default. Its zero
// value is ready to use, with 0 as the default.
type Devices struct {
	mu      sync.RWMutex
	byID    map[int]int
	initial int
}

// Get returns the current device of the calling thread.
func (d *Devices) Get() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if len(d.byID) > 0 {
		if index, ok := d.byID[id()]; ok {
			return index
		}
	}
	return d.initial
}

// Set chooses the device of the calling thread.
func (d *Devices) Set(index int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if index == d.initial {
		delete(d.byID, id())
		return
	}
	if d.byID == nil {
		d.byID = make(map[int]int)
	}
	d.byID[id()] = index
}

// Reset forgets the choice of the calling thread.
func (d *Devices) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, id())
}

// SetDefault chooses the device of all threads that chose none.
func (d *Devices) SetDefault(index int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initial = index
}

// Chosen returns how many threads have another device than the default.
func (d *Devices) Chosen() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.byID)
}
