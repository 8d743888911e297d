// Package checkpoint stores the state of a training run so that a kill at any
// moment costs no more than the steps since the last save.
//
// # Concepts
//
// A Store is a directory with one directory a checkpoint, step-00000100 and so
// on. Save writes the files into a temporary directory, flushes each of them and
// the directory, writes the manifest checkpoint.json last, renames the directory
// into place and flushes the parent. Only then it removes what is older than the
// newest checkpoints to keep. So a directory with a plain name is complete.
//
// The manifest lists size and CRC-32C of every file. Opening a checkpoint
// compares all of them before anything is loaded: truncation, a flipped bit and a
// missing file are found, in the manifest too.
//
// The newest checkpoint is the one that was saved last, which is the one with
// the highest step unless a run went back to an earlier step. The manifest keeps
// the order of saving as a sequence number.
//
// Load fills the tensors of a model; it checks all names, dtypes and shapes
// before it writes the first of them.
//
// # Concurrency
//
// A Store belongs to one goroutine; Save locks the directory against other
// processes. A Checkpoint may be read from several goroutines.
//
// # Errors
//
// ErrNone says that a Store holds no checkpoint. *CorruptError names the file of
// a damaged checkpoint and what is wrong with it. *ConfigError says that a
// checkpoint belongs to a model of another configuration. A full disk or an
// unwritable directory gives an error that names the path and what to do; the
// temporary directory is gone and the earlier checkpoints are as they were.
package checkpoint
