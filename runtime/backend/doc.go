// Package backend is the contract between the runtime and training frameworks: adapters, trainers
// and observers.
//
// # Concepts
//
// A backend is a training framework, such as native. A Factory names it and makes its Adapter,
// which finds the framework, turns the parameters of a module into Args, and knows the classes of
// trainers for each stage. Abilities that only some frameworks need are small interfaces that an
// Adapter may implement: EarlyVersioner, EnvDefaulter, TrainerInitializer, DataUser, InProcess. A
// Registry holds the factories that are compiled in. Package train owns the order of calls.
//
// Args and Environ record every change that a run makes, with its author, and can undo it.
//
// # Concurrency
//
// A Registry is immutable. One goroutine drives an Adapter, its Trainer and the Observers.
//
// # Errors
//
// ErrUnknown is wrapped if an experiment names a framework that is not compiled in. Train returns
// ErrInterrupted if its context ended and the state was saved.
package backend
