// Package dashboards generates the Grafana dashboards in metrics/dashboards.
//
// # Concepts
//
// All returns the dashboards as values, in the schema that every Grafana since version 9 reads; go
// generate writes them to files. Rows of panels are laid out in the order in which they are
// written. Every query filters by the variables run and rank. A Query is marked if it may be empty
// for a healthy run. Tests run all queries on a Prometheus that has scraped a run and check that
// the others are not empty.
//
// # Concurrency
//
// Each call of All builds new values, which belong to the caller.
//
// # Errors
//
// Write returns the errors of encoding/json and of the file system.
package dashboards

//go:generate go run ../generate dashboards ../../metrics/dashboards
