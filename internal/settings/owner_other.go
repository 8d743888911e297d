//go:build !unix

package settings

import "io/fs"

// foreign is not known here.
func foreign(fs.FileInfo) bool { return false }
