// Package checkpoint stores the state of a training run so that a kill at any
// moment costs no more than the steps since the last save.
//
// # Concepts
//
// A Store is a directory with one directory per checkpoint, step-00000100 and so on. Save writes
// the files into a temporary directory, flushes each of them and the directory, writes the manifest
// checkpoint.json last, renames the directory into place and flushes the parent. Only then does it
// remove older checkpoints of the same run, except those to keep: the newest ones, others by step
// or validation loss, and always the last one whose training was judged good. So a directory with a
// plain name is complete.
//
// The manifest names the run, how it was judged, and lists size and CRC-32C of every file. Opening
// a checkpoint compares all of them before anything is loaded: truncation, a flipped
// bit and a missing file are found, in the manifest too. A Store may look further into
// a checkpoint before it resumes from it, see Settings.Check.
//
// The newest checkpoint is the one that was saved last, which is the one with
// the highest step unless a run went back to an earlier step. The manifest keeps
// the order of saving as a sequence number.
//
// A save removes only intact checkpoints of its own run. Directories that are damaged, cannot be
// read now, were written by a newer version, belong to another run or are not checkpoints stay; one
// that has the name of a new checkpoint is moved to previous/1, or to the first free number.
//
// Load fills the tensors of a model; it checks all names, dtypes and shapes
// before it writes the first of them.
//
// # Concurrency
//
// A Store is not safe for concurrent use. Acquire locks the directory against other processes until
// Close. Save locks it for its duration if it is not locked. A Checkpoint may be read from several
// goroutines.
//
// # Errors
//
// ErrNone says that a Store holds no checkpoint. *CorruptError names the file of a damaged
// checkpoint and what is wrong with it; *UnreadableError says that the system could not read it,
// *VersionError that a newer version wrote it, and *OwnerError that it belongs to another run.
// *ConfigError says that a checkpoint belongs to a model of another configuration. A full disk or
// an unwritable directory gives an error that names the path and what to do; the temporary
// directory is gone and the earlier checkpoints are as they were.
package checkpoint
