package config

import "fmt"

// Report lists what loading an experiment noticed besides errors.
type Report struct {
	// Warnings are legal things that are probably mistakes, in the order they were found.
	Warnings []Warning
	// Collisions are keys that two sources set to different values.
	Collisions []Collision
}

// Warning is one probable mistake.
type Warning struct {
	// Origin is where the value in question was written.
	Origin Origin
	// Path is the dotted key path, empty for a whole file or token.
	Path string
	// Message says what was noticed and what happens.
	Message string
	// Hint says what to do, and may be empty.
	Hint string
}

// String renders origin, path, message and hint on one line.
func (w Warning) String() string {
	return (&Error{Origin: w.Origin, Path: w.Path, Problem: w.Message, Hint: w.Hint}).Error()
}

// Source names one of the sources that are merged into a module.
type Source string

// The sources of module parameters that can collide.
const (
	SourceModulePreset Source = "module preset"
	SourceModelPreset  Source = "model preset"
	SourceExperiment   Source = "experiment"
)

// Collision is a key that two sources set to different values; the first source keeps it.
type Collision struct {
	// Module is the module of the experiment, and Key its top-level parameter.
	Module, Key string
	// Winner is the source whose value is kept, Loser the other one.
	Winner, Loser Source
	// Kept and Dropped are the two values; their origins say where each was written.
	Kept, Dropped Value
}

// String renders key, both values and both origins on one line.
func (c Collision) String() string {
	return fmt.Sprintf("modules.%s: %s: %s keeps %s (%s), %s value %s (%s) is dropped",
		c.Module, c.Key, c.Winner, c.Kept.describe(), c.Kept.Origin(), c.Loser, c.Dropped.describe(), c.Dropped.Origin())
}

func (r *Report) warn(origin Origin, path, message, hint string) {
	r.Warnings = append(r.Warnings, Warning{Origin: origin, Path: path, Message: message, Hint: hint})
}

// collide records a collision unless both values are the same.
func (r *Report) collide(c Collision) {
	if !c.Kept.Equal(c.Dropped) {
		r.Collisions = append(r.Collisions, c)
	}
}
