package data

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/spf13/cobra"
)

// newDiffusionCommands returns the commands of Primus that make datasets for diffusion models. Its
// Python programs do the work.
func newDiffusionCommands(prog cli.Program) []*cobra.Command {
	var all []*cobra.Command
	for name, short := range map[string]string{
		"diffusion-raw":     "Make a dataset of images and texts with the program of Primus",
		"diffusion-encoded": "Make a dataset of encoded images and texts with the program of Primus",
		"diffusion-ingest":  "Make a dataset of encoded Arrow files with the program of Primus",
	} {
		all = append(all, &cobra.Command{
			Use: name + " [arguments]", Short: short, DisableFlagParsing: true,
			Long: short + `, which a
checkout of Primus has: the one that the file of --config is in, the current directory or
PRIMUS_PATH. All arguments are passed on, and it runs in a process for each device of this
node (GPUS_PER_NODE, else 8), as under torchrun.`,
			Example: fmt.Sprintf(`  primus data %[1]s --config Primus/primus/configs/data/megatron/diffusion/preprocessing/quickstart_pokemon.yaml
  GPUS_PER_NODE=1 PRIMUS_PATH=Primus primus data %[1]s --config mine.yaml`, name),
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 || slices.Contains(args, "-h") || slices.Contains(args, "--help") {
					return cmd.Help()
				}
				return runDiffusion(cmd, prog, args)
			},
		})
	}
	return all
}

// mainOfPrimus is the Python program of a checkout of Primus.
const mainOfPrimus = "primus/cli/main.py"

func runDiffusion(cmd *cobra.Command, prog cli.Program, args []string) error {
	checkout := cmp.Or(os.Getenv("PRIMUS_PATH"), ".")
	for i, arg := range args {
		file, joined := strings.CutPrefix(arg, "--config=")
		if arg == "--config" && i+1 < len(args) {
			file, joined = args[i+1], true
		}
		if joined {
			checkout = cmp.Or(config.Checkout(file), checkout)
		}
	}
	program, err := filepath.Abs(filepath.Join(checkout, filepath.FromSlash(mainOfPrimus)))
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%s: %w; it is a program of Primus: name a checkout of it as PRIMUS_PATH, or call this in one", cmd.CommandPath(), err)
	}
	options, err := launch.Options{Python: "python3", Ranks: "0,last", Grace: cli.DefaultGrace}.Resolve(os.LookupEnv)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	plan, err := launch.NewPlan(launch.Job{
		Program: append([]string{program, "data", cmd.Name()}, args...), PerDevice: true,
		PythonPath: []string{filepath.Dir(filepath.Dir(filepath.Dir(program)))}, LogDir: filepath.Join("output", cmd.Name(), "ranks"),
	}, options)
	if err != nil {
		return err
	}
	return launch.Run(cmd.Context(), plan, launch.Settings{
		Show: func(who, line string) { fmt.Fprintf(prog.Out, "%s %s\n", who, line) },
		Log:  func(text string) { fmt.Fprintln(prog.Err, text) },
		Line: func(int, string) bool { return false },
	})
}
