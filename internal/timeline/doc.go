// Package timeline records when each call of an op began and ended, and writes it in the trace
// event format that Perfetto and chrome://tracing open. Join makes one timeline of those of several
// ranks.
//
// # Concurrency
//
// A Timeline may see calls from several goroutines.
package timeline
