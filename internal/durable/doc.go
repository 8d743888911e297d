// Package durable writes files so that a crash, a kill or a full disk leaves
// either the old content or the new one, never a mixture.
//
// # Concepts
//
// WriteFile writes a temporary file beside its target, flushes it to the disk and renames it into
// place; the directory is flushed last, so that the rename survives a power cut. Temporary names
// contain TempMark, by which RemoveTemps finds the files of a killed process.
//
// LockFile keeps two processes out of one directory with an advisory lock that
// the operating system drops when its holder dies.
//
// # Concurrency
//
// All functions are safe for concurrent use. Two concurrent WriteFile calls for
// one path leave the content of one of them, complete.
//
// # Errors
//
// Errors name the path and wrap the operating system's error. Explain adds what
// to do. They carry no package prefix: the caller, which knows what the file is
// for, gives the context. A lock that another process holds is a *LockedError.
package durable
