// Package placement runs primus elsewhere: on the nodes of a Slurm job, in a container, in the pods
// of a Kubernetes job.
//
// # Concepts
//
// A Run is a command line of primus with the facts about its experiment that a launcher needs. New
// makes a Plan of it for the first launcher of a chain: a command, the files that it reads and its
// variables, or a manifest. There primus runs with the rest of the chain.
//
// Settings are the values of the launcher file, whose sections are those of Primus: slurm,
// container, direct, and kubernetes. Layers of them are merged, and each value knows where it was
// written.
//
// The values of variables whose names call them secrets are in no command and no file of a plan: a
// command inherits them, and a manifest names the Kubernetes secret that holds them.
//
// # Errors
//
// Mistakes in settings are *document.Error values, joined.
package placement
