// Package backend is the contract between the runtime and training frameworks: what an adapter offers, what a trainer
// does in its life, and what it tells observers.
//
// # Concepts
//
// A backend is a training framework, such as native. A Factory names it and makes its Adapter, which finds the
// framework, turns the parameters of a module into Args, and knows the classes of trainers for each stage. What only some
// frameworks need are small interfaces that an Adapter may also have: EarlyVersioner, EnvDefaulter, TrainerInitializer,
// DataUser. A Registry holds the factories that are compiled in. Package train owns the order of calls.
//
// Everything that a run changes on the way is seen: Args and Environ remember who changed what, and can go back.
//
// # Concurrency
//
// A Registry is immutable once built. One goroutine drives an Adapter and its Trainer; an Observer is called from it.
//
// # Errors
//
// ErrUnknown is wrapped when an experiment names a framework that is not compiled in, ErrPlanOnly when one is to run that
// cannot. ErrInterrupted is what Train returns when its context ended and the state was saved.
package backend
