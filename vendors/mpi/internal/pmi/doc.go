// Package pmi lets the ranks of a job find each other where the launcher does not: it is what a
// process manager is to MPICH. Ranks of any launcher find out through it which of them is gone.
//
// # Concepts
//
// A Server runs in one process of the job and keeps the values that ranks publish while MPICH
// starts. A Client connects a rank with it, and gives MPICH a file descriptor on which it speaks
// version 1 of the process management interface.
//
// The connection, of internal/heartbeat, lasts as long as the rank. When a rank is lost, or ends
// without having closed its Client, the server tells all others, and their Clients report it. A
// rank proves that it knows the secret of the job.
//
// # Concurrency
//
// A Server and a Client are safe for concurrent use.
//
// Source: Balaji et al. 2010, doi:10.1007/978-3-642-15646-5_4, for the interface; the messages are
// those that MPICH sends.
package pmi
