// Package pytext writes values as Python does: as PyYAML dumps them, and as str shows them.
//
// A file that is equal to the one of the ancestor, byte for byte, is read in the same way: YAML
// libraries differ in which texts are numbers, dates or switches.
package pytext
