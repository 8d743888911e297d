package config

import (
	"errors"
	"fmt"

	"github.com/primus-fl/primus/document"
)

// ErrNoEffect marks a value that was written and has no effect, which [Options.Strict] refuses.
var ErrNoEffect = errors.New("config: value without effect")

// Report lists what loading an experiment noticed besides errors.
type Report struct {
	// Warnings describe values that are valid but probably mistakes, in the order in which they were
	// found.
	Warnings []document.Warning
	// Collisions are values that were written and have no effect, in the order they were found.
	Collisions []Collision
}

// Err returns the collisions as errors that match [ErrNoEffect], joined, and nil when there are
// none.
func (r Report) Err() error {
	errs := make([]error, len(r.Collisions))
	for i, c := range r.Collisions {
		errs[i] = c.err()
	}
	return errors.Join(errs...)
}

// Source names one of the sources that are merged into a module.
type Source string

// The sources of parameters that can collide.
const (
	SourceModulePreset Source = "module preset"
	SourceModelPreset  Source = "model preset"
	SourceExperiment   Source = "experiment"
	SourceParams       Source = "parameters"
	// SourceTopLevel is a key of the experiment outside of its modules.
	SourceTopLevel Source = "top level"
	// SourceEarlier and SourceLater are the places of a key that one mapping has twice.
	SourceEarlier Source = "earlier of two equal keys"
	SourceLater   Source = "later one"
)

// Collision is a value that was written and has no effect, because another source has the key or
// because nothing reads it.
type Collision struct {
	// Module is the module of the experiment, empty outside of modules.
	Module string
	// Key is the dotted key path, below the parameters of Module where that is given.
	Key string
	// Winner is the source whose value is kept, empty when nothing reads the key. Loser is the other
	// one.
	Winner, Loser Source
	// Kept and Dropped are the two values; their origins say where each was written. Kept is not set
	// without Winner.
	Kept, Dropped document.Value
	// Hint says what to do, and may be empty.
	Hint string
}

// Path is the key path with the module it belongs to.
func (c Collision) Path() string {
	if c.Module == "" {
		return c.Key
	}
	return document.JoinPath(document.JoinPath("modules", c.Module), c.Key)
}

// String renders key, both values and both origins on one line.
func (c Collision) String() string { return c.err().Error() }

func (c Collision) err() *document.Error {
	problem := c.Dropped.Describe() + " has no effect, the key is ignored"
	if c.Winner != "" {
		problem = fmt.Sprintf("%s of the %s has no effect, %s of the %s is kept (%s)",
			c.Dropped.Describe(), c.Loser, c.Kept.Describe(), c.Winner, c.Kept.Origin())
	}
	return &document.Error{Origin: c.Dropped.Origin(), Path: c.Path(), Problem: problem, Hint: c.Hint, Kind: ErrNoEffect}
}

func (r *Report) warn(origin document.Origin, path, message, hint string) {
	r.Warnings = append(r.Warnings, document.Warning{Origin: origin, Path: path, Message: message, Hint: hint})
}

// ignore records a value of the experiment that nothing reads.
func (r *Report) ignore(path string, value document.Value, hint string) {
	r.Collisions = append(r.Collisions, Collision{Key: path, Loser: SourceExperiment, Dropped: value, Hint: hint})
}

// repeat records values of keys that one mapping has twice.
func (r *Report) repeat(duplicates []document.Duplicate) {
	for _, d := range duplicates {
		r.Collisions = append(r.Collisions, Collision{
			Key: d.Key, Winner: SourceLater, Loser: SourceEarlier, Kept: d.Kept, Dropped: d.Dropped, Hint: "write the key once",
		})
	}
}

// collide records collisions in a module.
func (r *Report) collide(module string, collisions []Collision) {
	for _, c := range collisions {
		c.Module = module
		r.Collisions = append(r.Collisions, c)
	}
}
