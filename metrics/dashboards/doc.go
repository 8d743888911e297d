// Package dashboards makes the Grafana dashboards that lie beside it as JSON.
//
// # Concepts
//
// All returns the dashboards as values, in the schema that every Grafana since version 9 reads; go generate writes them to
// files. Rows of panels are laid out in the order in which they are written. Every query filters by the variables run and
// rank. A Query says whether it may be empty for a healthy run; all others must not be, which tests ask a Prometheus that
// has scraped one.
//
// # Concurrency
//
// Values are built anew by each call of All and belong to the caller.
//
// # Errors
//
// There are none but that of encoding/json, which Write returns.
package dashboards

//go:generate go run ./generate
