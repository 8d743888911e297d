// Package formats has the file formats that documents are read from and written in: YAML, JSON and
// TOML.
//
// A program that needs other formats makes a [document.Formats] of its own with
// [document.NewFormats], from the types of this package and any other [document.Loader]. Package
// document knows none of them, so that packages which only pass documents on depend on no parser.
//
// The types have no state. Errors are [*document.Error] values with a position.
package formats
