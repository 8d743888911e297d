// Package pipeline has the schedules of pipeline parallelism as data: for each rank a list of
// forward and backward passes in order, and the messages that follow from it.
//
// Generate makes the table of a named schedule, Search the best one that it finds for measured
// times and a limit of memory, and Parse reads one that a user wrote. Check proves that a table can
// run, Compile adds the sends and receives, and Simulate computes when each pass begins and ends.
//
// # Concurrency
//
// The functions keep no state. Tables are not changed by them.
package pipeline
