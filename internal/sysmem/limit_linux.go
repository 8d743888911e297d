package sysmem

import "os"

// Read returns the limit of this process.
func Read() (Limit, error) { return read(os.DirFS("/")) }
