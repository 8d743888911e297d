// Package spans exports the steps of a run and the time of its ops to OpenTelemetry.
//
// # Concepts
//
// FromEnvironment reads the variables of OpenTelemetry, of which OTEL_EXPORTER_OTLP_ENDPOINT turns
// the export on. An Exporter observes a run and taps an op manager. Each step is a trace: the span
// "step" has a child for each family of ops and phase, such as "gemm forward", which lasts from the
// beginning of its first call to the end of its last and counts the calls, their time and their
// bytes. Steps link to the span "run".
//
// # Concurrency
//
// An Exporter may see calls from several goroutines. Spans are sent from a goroutine of the SDK,
// which Close ends; a run never waits for them, and spans that cannot be sent are dropped.
//
// # Errors
//
// Variables with wrong values are errors of FromEnvironment. An endpoint that does not accept spans
// is a warning, once.
package spans
