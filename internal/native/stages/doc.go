// Package stages divides a model into the stages of a pipeline and runs their passes.
//
// Pipeline has the parameters, with Megatron's and Primus' names. Its Plan says which layers each
// stage has and makes the table of a number of micro batches, by package pipeline. A Schedule is
// what one stage does for such a table: the passes in order, with the memory that each takes and
// the messages between them. Run does it, and leaves the computing to a Work.
//
// # Concurrency
//
// A Plan keeps the tables that it has made, and belongs to one goroutine, as a Run does. Schedules
// are not changed after they were made.
package stages
