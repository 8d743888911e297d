// Package torchfile reads files that PyTorch writes, without PyTorch: the archives of torch.save
// and the directories of torch.distributed.checkpoint.
//
// # Concepts
//
// Both describe their content with Python's pickle format, which can name functions that are
// called while it is loaded. This package calls nothing: an object is its class, arguments and
// state, and a class that no checkpoint needs is refused by its name. A Tensor is read where it
// lies, in parts, so that a checkpoint may be larger than memory.
//
// # Concurrency
//
// A Checkpoint and its tensors may be used by one goroutine at a time.
//
// # Errors
//
// Errors begin with the package and name the file.
package torchfile
