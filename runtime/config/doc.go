// Package config loads experiments: the files that say which framework trains which model with which parameters.
//
// # Concepts
//
// An experiment file names, for each of its modules, a module preset (training defaults) and a model preset
// (architecture). [LoadExperiment] reads the file and its `extends`, substitutes ${NAME} and ${NAME:default}, looks the
// presets up below the preset roots and merges, later wins:
//
//	model preset < module preset < overrides of the experiment < command line
//
// The first step is by whole top-level keys, the others are deep merges. That a module preset beats the model preset key
// by key, even with null, surprises people. So every value that was written and has no effect (lost to another source,
// written twice, under a key that nothing reads) is listed in [Report.Collisions] with both values and both places, and
// [Options.Strict] makes it an error. What is legal and probably a mistake, such as an override key one letter away from a
// preset key, is listed in [Report.Warnings].
//
// A configuration is a tree of [Value] and [Map]. It keeps the order of keys, the difference between 1 and 1.0, and for
// every value its [Origin]: file, line and column, the environment variables it came from, or the command line token.
// YAML is typed by YAML 1.1 rules, so `yes` is a bool, 0777 is 511 and 1e-5 is text while 1.0e-5 is a float; JSON and
// TOML have their own types. A string that is exactly `null` becomes null anywhere in module parameters and platform
// values, except inside lists.
//
// A value also remembers what it replaced when sources were merged ([Value.Replaced]).
//
// [Decode] fills a struct from a [Map] and reports every wrong type with key path, value and origin. [Render] writes a map
// as YAML, JSON or TOML, with origins as comments if wanted; [Experiment.View] is what an experiment comes to,
// [Experiment.Export] a document that loads back to it, and [Diff] compares two of them.
//
// Loading reads files and nothing else: it creates no directory and changes no environment.
//
// # Concurrency
//
// [Value], [Map] and a loaded [Experiment] are immutable and safe for concurrent use as long as nobody assigns to the
// exported fields. LoadExperiment may be called concurrently, also with one [Cache].
//
// # Errors
//
// Problems in configurations are [*Error] values, several of them joined where more than one was found, so use errors.Is
// and errors.AsType. Sentinels: [ErrUsage] for command line tokens, [ErrCycle], [ErrOutsideRoots], [ErrUnsetVariable],
// [ErrNoEffect]; missing files and presets match fs.ErrNotExist. No input makes the package panic.
package config
