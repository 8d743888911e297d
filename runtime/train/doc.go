// Package train runs a module of an experiment from configuration to the end of training.
//
// # Concepts
//
// Run owns the order, and is the only one that applies patches:
//
//	env block, HF_HOME, rank -> adapter: SetupPath, EarlyVersion, defaults of the environment, setup hooks, Prepare
//	-> ConvertConfig -> patches build_args -> merge -> LoadTrainer -> new trainer, InitTrainer
//	-> patches setup -> Setup -> Init -> patches before_train -> Train -> patches after_train -> Cleanup
//
// NewPlan goes the same way up to the trainer, on a copy of the environment, and says what every patch would do. It knows no
// framework by name and no implementation of an op. What Run sets in the environment is taken back when it returns.
//
// # Errors
//
// Errors keep the cause for errors.Is and errors.As behind the text "Training execution failed: …", which users of Primus
// search for. A configuration that cannot be used is returned as it is: nothing was executed.
package train
