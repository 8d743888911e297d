// Package metrics makes dispatch and training visible to Prometheus.
//
// # Concepts
//
// Dispatch reads the counters of an op manager when it is scraped, so that a call costs nothing more for being watched,
// and counts fallbacks as a listener. Training is an observer of a run. Both register with the registry that they are
// given, never with a global one, and Close takes them out again. Serve offers a registry over HTTP.
//
// Names are primus_<subsystem>_<what>_<unit>, in base units; labels come from bounded sets only: ops, impls, kinds and
// vendors. docs/metrics.md lists them all, and testdata/metrics.txt is what they look like.
//
// # Concurrency
//
// Everything here is safe for concurrent use. Serve starts a goroutine that Close ends.
//
// # Errors
//
// A name that is registered already is the error of the registry, with nothing registered. Serve reports an address that
// it cannot listen on; what goes wrong later is reported by Close.
package metrics
