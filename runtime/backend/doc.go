// Package backend is the contract between the runtime and training frameworks: what an adapter offers, what a trainer
// does in its life, and what it tells observers.
//
// # Concepts
//
// A backend is a training framework, such as native. Its Adapter turns the parameters of a module into arguments of its
// own and makes Trainers. A Registry holds the adapters that are compiled in. Package train owns the order of calls:
//
//	ConvertConfig, NewTrainer, Setup, Init, Train, Cleanup
//
// # Concurrency
//
// A Registry is immutable once built. One goroutine drives a Trainer; an Observer is called from it.
//
// # Errors
//
// ErrUnknown is wrapped when an experiment names a framework that is not compiled in. ErrInterrupted is what Train
// returns when its context ended and the state was saved.
package backend
