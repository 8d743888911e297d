// Package metrics exports dispatch and training to Prometheus.
//
// # Concepts
//
// Dispatch reads the counters of an op manager when it is scraped, so that exporting them costs
// nothing in a call. As a listener it counts fallbacks and switches and observes the durations of
// some calls. Training observes a run. Process exports the build, the plugins and the process. All
// register with the registry that they are given, never with a global one, and Close unregisters
// them. Serve offers a registry over HTTP, and a Textfile writes it to a file.
//
// Names are primus_<subsystem>_<what>_<unit>, in base units; labels come from bounded sets only:
// ops, impls, kinds, vendors, patches, plugins. docs/reference/metrics.md lists them all as
// Prometheus reads them. Package dashboards and the folder rules use them.
//
// # Concurrency
//
// Everything here is safe for concurrent use. Serve and NewTextfile start a goroutine that Close
// ends.
//
// # Errors
//
// If a name is already registered, the error is that of the registry, and nothing is registered.
// Serve returns an error for an address that it cannot listen on, and NewTextfile for a file that
// it cannot write. Close returns later errors.
package metrics
