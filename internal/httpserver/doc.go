// Package httpserver starts and stops the HTTP servers of the module.
//
// # Concepts
//
// [Start] listens, gives an [http.Server] the timeouts that it lacks and serves until
// [Server.Close], or until the context of [Server.Run] ends. Handlers answer refused requests with
// [WriteProblem].
//
// # Concurrency
//
// A Server is safe for concurrent use. It has one goroutine, which Close waits for.
//
// # Errors
//
// An address that cannot be listened on is an error of Start. Errors wrap those of package net and
// name the address; callers add their own name.
package httpserver
