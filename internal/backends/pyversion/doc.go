// Package pyversion finds the versions of Python packages without running Python.
//
// # Concepts
//
// OfPackage reads the version that a package states in its package_info.py or __init__.py,
// OfInstalled that of an installed distribution.
//
// # Errors
//
// Files that cannot be read give their own errors; a version that is not stated names the files.
package pyversion
