// Package policyfile reads dispatch policies that are written as YAML, and
// follows such a file while a program runs.
//
// # Concepts
//
// A file becomes an Overlay: the values that it gives, each with the file and
// line that it came from. Apply lays it over a policy of lower precedence. Files
// are strict: unknown keys, wrong types and values given twice are errors, all of
// them reported together, each with file, line and column. Schema is the format
// as a JSON Schema.
//
// Documents that are not files, such as a block of an experiment, become a Value
// first and are read by the same rules (FromValue).
//
// A Watcher polls a file. Content that has changed and stands still for one
// interval is parsed and handed over as a whole; content that cannot be used is
// reported once and changes nothing, and neither does a file that is gone.
//
// # Concurrency
//
// Overlays and Values are immutable. A Watcher has one goroutine, which Close
// ends and waits for.
//
// # Errors
//
// *Error is one fault with its place. Read also returns the errors of the file
// system, which keep errors.Is.
package policyfile
