// Package pysource reads facts out of Python packages without running Python.
//
// # Concepts
//
// Constants finds assignments of literals at the top level of a module, PackageVersion the version that a package states in
// its package_info.py or __init__.py, and InstalledVersion that of an installed distribution. What would need an interpreter
// is not there for this package.
//
// # Concurrency
//
// Functions only.
//
// # Errors
//
// Files that cannot be read give their own errors; a version that is not stated names the files.
package pysource
