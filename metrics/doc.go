// Package metrics makes dispatch and training visible to Prometheus.
//
// # Concepts
//
// Dispatch reads the counters of an op manager when it is scraped, so that a call costs nothing more for being watched,
// and counts fallbacks as a listener. Training is an observer of a run. Both register with the registry that they are
// given, never with a global one. Serve offers a registry over HTTP.
//
// Names are primus_<subsystem>_<what>_<unit>; labels come from bounded sets only.
//
// # Concurrency
//
// Everything here is safe for concurrent use.
package metrics
