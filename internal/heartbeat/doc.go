// Package heartbeat connects the processes of a job with one of them, and notices when one is gone.
//
// # Concepts
//
// A Conn carries lines in both directions. Both sides send a sign of life every second, and a side
// that hears nothing for fifteen takes the other one for lost. Dial makes the Conn of a process and
// Accept that of the process which all others connect with. A process says who it is, its claim,
// and proves that it knows the secret of the job.
//
// # Security
//
// The secret is never sent. What is sent is not encrypted: it belongs in the network of a cluster.
//
// # Concurrency
//
// Send, KeepAlive and Close of a Conn may be called at any time. Receive is for one goroutine.
package heartbeat
