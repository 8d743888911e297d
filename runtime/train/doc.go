// Package train runs a module of an experiment from configuration to the end of training.
//
// # Concepts
//
// Run calls the parts of a backend in this order. Nothing else applies patches:
//
//	env block, HF_HOME, rank -> adapter: SetupPath, EarlyVersion, defaults of the environment, setup hooks, Prepare
//	-> ConvertConfig -> patches build_args -> merge -> LoadTrainer -> new trainer, InitTrainer
//	-> patches setup -> Setup -> Init -> patches before_train -> Train -> patches after_train -> Cleanup
//
// NewPlan follows the same order up to the trainer, on a copy of the environment, and reports what
// every patch would do. The package refers to no framework and no impl by name. When Run returns,
// it undoes its changes of the environment.
//
// # Errors
//
// Errors of a run begin with "Training execution failed: ", which users of Primus search for, and
// wrap their cause. An error in the configuration is returned as it is, since nothing was executed.
package train
