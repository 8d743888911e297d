// Package primus holds the files that come with the program: its documentation and the examples.
//
// Primus-FL is a training runtime whose every compute op is dispatched to one of many
// implementations. Programs that dispatch ops of their own import package opmanager, which has
// examples; authors of implementations begin with packages opregistry and opstest; a program with
// the commands of primus and more of its own calls Main of package cmd/primus/command.
package primus

import (
	"embed"
	"io/fs"
)

//go:embed README.md docs/*.md docs/*/*.md examples/native examples/dummy
var files embed.FS

// Files returns the files below their paths in the source tree, such as docs/howto/training.md and
// examples/native/configs/llama_2M-pretrain.yaml. It is safe for concurrent use.
func Files() fs.FS { return files }
