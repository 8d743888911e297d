// Package fair divides work among clients that ask for more than can be done.
//
// # Concepts
//
// A Ledger counts the work that was done for each client. Whoever has work to give out gives it to
// the client with the least. A client that comes, or comes back, begins with the count of the least
// served of those who are there, so that nobody saves up a claim by staying away, and nobody loses
// a count by leaving and returning. This is the virtual token counter of "Fairness in Serving Large
// Language Models" (Sheng et al., OSDI 2024). A Gate lets a few pieces of work go on at once, of
// which one may be large, and gives each free place to the client with the least.
//
// # Concurrency
//
// A Ledger belongs to one goroutine or lock; a Gate is safe for concurrent use.
//
// # Errors
//
// Acquire returns the cause of a context that ends.
package fair
