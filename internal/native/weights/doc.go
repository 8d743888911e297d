// Package weights reads folders of weights: checkpoints of the native trainer and the folders in
// which Hugging Face's transformers keeps a model.
//
// # Concepts
//
// A Folder has a config.json, which decides the architecture, and tensors in model.safetensors or
// in the files that model.safetensors.index.json lists. Open reads both descriptions and checks
// them; Load fills a model from the tensors. Elements are f32, bf16 or f16 and are converted to f32
// in small parts while they are read, so that the weights are never in memory twice.
//
// Only some classes of transformers are read; the error for another one lists them. A folder that
// asks for something else, such as another activation, is refused, and so is one with a tensor too
// many or too few: weights that load compute what transformers computes with them.
//
// # Concurrency
//
// A Folder may be used by one goroutine at a time.
//
// # Errors
//
// Errors name the file and what is wrong with it.
package weights
