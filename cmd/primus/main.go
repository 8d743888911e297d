// Command primus trains models whose every compute op is dispatched.
package main

import (
	"os"

	"github.com/primus-fl/primus/cmd/primus/command"
)

func main() {
	os.Exit(command.Main(os.Args[1:], command.StandardStreams()))
}
