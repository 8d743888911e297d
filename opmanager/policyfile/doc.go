// Package policyfile reads dispatch policies that are written as YAML, and follows such a file
// while a program runs.
//
// # Concepts
//
// A file becomes a [Layer] of a policy stack (opmanager.PolicyStack): the values that it gives,
// each with the file and line of its key. Files are strict: unknown keys, wrong types and keys
// given twice are errors, all of them reported together. [Schema] is the format as a JSON Schema.
//
// Values are read by package document, so YAML means the same here and in experiments. A policy
// that is part of another document, such as the dispatch block of an experiment, is read from its
// entries by the same rules ([FromEntries]).
//
// A [Watcher] polls a file. Content that has changed and stays the same for one interval is parsed
// and put in force as a whole. Content that cannot be used is reported once and changes nothing,
// and neither does a file that is gone.
//
// # Concurrency
//
// Layers are immutable. A Watcher has one goroutine; Close ends it and waits for it.
//
// # Errors
//
// Each fault is a [*document.Error] with its place, wrapped once with the word policy. Read also
// returns the errors of the file system, which keep errors.Is.
package policyfile
