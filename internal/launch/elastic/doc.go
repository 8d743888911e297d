// Package elastic starts the ranks of a job, and starts them again after a failure.
//
// # Concepts
//
// A member is a process that starts ranks on its machine. Member 0 coordinates: it waits for the
// others, numbers the ranks in the order of the members, and tells each when to begin. One attempt
// of all ranks is a round. When a rank fails, the members end the others, and the next round begins
// with the members that are left. One that is gone has some seconds to come back; a member that
// comes later takes part from the next round on.
//
// A rank that ends with EnvErrorFile in its environment may leave its error there, in the format of
// torchrun. The reason of a failure is the first error of a rank that did not fail because of
// another one, and names all ranks that failed for it; other errors are logged.
//
// # Concurrency
//
// Run is called once by each member.
//
// # Errors
//
// Run returns nil when all ranks have ended well, ErrInterrupted when they were asked to end, and
// else a *Failure.
package elastic
