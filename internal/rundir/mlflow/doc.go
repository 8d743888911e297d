// Package mlflow sends the metrics of a run to a tracking server of MLflow.
//
// # Concepts
//
// A Client begins a run of an experiment, which it creates if there is none, and sends parameters
// and metrics through the REST API 2.0 in batches. It does so in a goroutine of its own: Log only
// queues values, and neither a slow server nor one that cannot be reached delays training. What
// does not arrive is counted.
//
// # Concurrency
//
// A Client is safe for concurrent use. It has a goroutine until Close returns.
//
// # Errors
//
// The first failure is passed to Settings.Warn; Close returns what became of the run.
package mlflow
