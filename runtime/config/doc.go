// Package config loads experiments: the files that say which framework trains which model with
// which parameters.
//
// # Concepts
//
// An experiment file names, for each of its modules, a module preset (training defaults) and a
// model preset (architecture). [LoadExperiment] reads the file and its `extends`, substitutes
// ${NAME} and ${NAME:default}, looks the presets up below the preset roots and merges, later wins:
//
//	model preset < module preset < overrides of the experiment < command line
//
// The first step is by whole top-level keys, the others are deep merges. That a module preset beats
// the model preset key by key, even with null, surprises people. So every value that was written
// and has no effect (lost to another source, written twice, under a key that nothing reads) is
// listed in [Report.Collisions] with both values and both places, and [Options.Strict] makes it an
// error. Values that are valid but probably mistakes, such as an override key one letter away from
// a preset key, are listed in [Report.Warnings].
//
// Files, values with their origins, overrides and rendering are those of the package document below
// this one. A string that is exactly `null` becomes null anywhere in module parameters and platform
// values, except inside lists. [Experiment.View] returns the resolved experiment,
// [Experiment.Export] a document that loads to the same values.
//
// Loading reads files and nothing else: it creates no directory and changes no environment.
//
// # Concurrency
//
// A loaded [Experiment] is immutable and safe for concurrent use as long as nobody assigns to the
// exported fields. LoadExperiment may be called concurrently, also with one [Cache].
//
// # Errors
//
// Problems in experiments are [*document.Error] values, several of them joined where more than one
// was found, so use errors.Is and errors.AsType. Sentinels: [ErrOutsideRoots] and [ErrNoEffect]
// here, [document.ErrUsage] for command line tokens, [document.ErrCycle],
// [document.ErrUnsetVariable]; missing files and presets match fs.ErrNotExist. No input makes the
// package panic.
package config
