package checkpoint

import (
	"errors"
	"fmt"
)

// ErrNone is returned when a Store holds no checkpoint at all.
var ErrNone = errors.New("checkpoint: no checkpoint")

// ErrClosed is returned by a Writer that is used after its Save has ended.
var ErrClosed = errors.New("checkpoint: the writer was used after its save ended")

// CorruptError reports a damaged checkpoint.
type CorruptError struct {
	Path string // the checkpoint's directory
	File string // the damaged file within it
	Got  string
	Want string
}

// Error names checkpoint and file, what was found, what was expected and what to do.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("checkpoint: %s is damaged: %s: given %s, want %s; load an earlier checkpoint", e.Path, e.File, e.Got, e.Want)
}

// UnreadableError reports that the system could not read a checkpoint, which may be intact.
type UnreadableError struct {
	Path string // the checkpoint's directory
	Err  error
}

// Error names the checkpoint and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("checkpoint: %s cannot be read now, which does not mean that it is damaged: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// VersionError reports that a newer version of this program wrote a checkpoint.
type VersionError struct {
	Path      string // the checkpoint's directory
	Got, Want int    // versions of the format: that of the checkpoint, and the newest supported one
}

// Error names the checkpoint and both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("checkpoint: %s has version %d of the format, this program understands up to %d: use the program that wrote it", e.Path, e.Got, e.Want)
}

// OwnerError reports that the checkpoints of a Store belong to another run.
type OwnerError struct {
	Dir      string // the Store's directory
	Run, Own string // the runs of the newest checkpoint and of the Store
}

// Error names the directory and both runs.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("checkpoint: the checkpoints in %s belong to run %s, and this is run %s", e.Dir, e.Run, e.Own)
}

// ConfigError reports that a checkpoint does not fit the model that it was loaded into.
type ConfigError struct {
	File   string
	Tensor string
	Got    string // what the checkpoint has, "" when the tensor is missing
	Want   string // what the model wants, "" when it has no such tensor
	Hint   string // the parameters that decide this, "" when unknown
}

// Error names file and tensor, both sides, and the parameters to compare.
func (e *ConfigError) Error() string {
	var s string
	switch {
	case e.Got == "":
		s = fmt.Sprintf("checkpoint: %s has no tensor %s, the model wants %s", e.File, e.Tensor, e.Want)
	case e.Want == "":
		s = fmt.Sprintf("checkpoint: %s: tensor %s has %s, the model has no such tensor", e.File, e.Tensor, e.Got)
	default:
		s = fmt.Sprintf("checkpoint: %s: tensor %s has %s, the model wants %s", e.File, e.Tensor, e.Got, e.Want)
	}
	s += ": the checkpoint belongs to another configuration"
	if e.Hint != "" {
		s += " (compare " + e.Hint + ")"
	}
	return s
}
