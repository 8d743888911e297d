// Package metrics makes dispatch and training visible to Prometheus.
//
// # Concepts
//
// Dispatch reads the counters of an op manager when it is scraped, so that counting a call costs nothing more for being
// watched, and as a listener counts fallbacks and switches and observes the durations of some calls. Training is an observer
// of a run. Process tells of build, plugins and the process. All register with the registry that they are given, never with
// a global one, and Close takes them out again. Serve offers a registry over HTTP, a Textfile keeps it in a file.
//
// Names are primus_<subsystem>_<what>_<unit>, in base units; labels come from bounded sets only: ops, impls, kinds, vendors,
// patches, plugins. docs/metrics.md lists them all, and testdata/metrics.txt is what they look like. Package dashboards
// and the folder rules hold what asks for them.
//
// # Concurrency
//
// Everything here is safe for concurrent use. Serve and NewTextfile start a goroutine that Close ends.
//
// # Errors
//
// A name that is registered already is the error of the registry, with nothing registered. Serve reports an address that
// it cannot listen on, NewTextfile a file that it cannot write; what goes wrong later is reported by Close.
package metrics
