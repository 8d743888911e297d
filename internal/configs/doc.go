// Package configs embeds the presets that come with the program.
//
// The tree has the layout of every preset root: modules/<framework>/ holds training defaults,
// models/<framework>/ architectures, platforms/ the description of clusters. A key of a module
// preset beats the same key of a model preset, so the presets of one framework keep the two sets of
// keys apart: whatever describes the network is in models/, seq_length included, and everything
// else in modules/.
//
// The embedded tree is read-only and safe for concurrent use.
package configs

import (
	"embed"
	"io/fs"
)

//go:embed modules models platforms
var presets embed.FS

// FS returns the embedded preset root.
func FS() fs.FS { return presets }
