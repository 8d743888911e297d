package models

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/weights/export"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
)

// exportOptions are the flags of the command.
type exportOptions struct {
	checkpoint, format, dtype, maxShard, output string
	weights                                     weights.Settings
}

const (
	formatHF   = "hf"
	formatGGUF = "gguf"

	keep = "keep" // the type of each weight
)

// exportTypes are the types of weights of each format.
var exportTypes = map[string][]string{formatHF: {keep, "f32", "bf16", "f16"}, formatGGUF: {"f32", "f16", "bf16", "q8_0"}}

// NewExport returns the command `primus export`.
func NewExport(prog cli.Program) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export --checkpoint DIR --format hf|gguf -o PATH",
		Short: "Write a trained model for other programs",
		Long: `Write a trained model for other programs.

hf is a folder that Hugging Face's transformers loads: config.json,
generation_config.json, the files of the tokenizer, and the weights in safetensors files
of at most --max-shard-size. The weights keep their type unless --dtype says another.

gguf is a file that llama.cpp loads. Matrices are of --dtype, which is f16 unless given;
q8_0 is blocks of 32 signed bytes with a scale. Vectors are f32.

Existing files are not replaced.`,
		Example: `  primus export --checkpoint output/local/local/my_run --format hf -o my_model
  primus export --checkpoint DIR --format hf --dtype bf16 --max-shard-size 2GB -o my_model
  primus export --checkpoint DIR --format gguf --dtype q8_0 -o my_model.gguf`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.convert(prog, func() (*weights.Folder, error) { return weights.Open(cmd.Context(), o.checkpoint, o.weights) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.checkpoint, "checkpoint", "", "`DIR` with the weights: a checkpoint, a run, whose newest checkpoint is used, or a folder of Hugging Face")
	AddWeightsFlags(cmd, &o.weights)
	flags.StringVar(&o.format, "format", formatHF, "`FORMAT`: hf or gguf")
	o.addTargetFlags(cmd, "`TYPE` of the weights: keep, f32, bf16 or f16, and with gguf f32, f16, bf16 or q8_0",
		"`PATH` of what is written: a directory, and with gguf a file *.gguf", keep, "f32", "bf16", "f16", "q8_0")
	cli.WithoutVariable(flags, "format")
	complete(cmd, "format", formatHF, formatGGUF)
	return cmd
}

// addTargetFlags gives a command the flags that say what is written: the texts of --dtype and
// --output, and the values of --dtype.
func (o *exportOptions) addTargetFlags(cmd *cobra.Command, dtype, output string, types ...string) {
	flags := cmd.Flags()
	flags.StringVar(&o.dtype, "dtype", "", dtype)
	flags.StringVar(&o.maxShard, "max-shard-size", "5GB", "weights of at most this `SIZE` in a safetensors file")
	flags.StringVarP(&o.output, "output", "o", "", output)
	cli.WithoutVariable(flags, "dtype", "max-shard-size", "output")
	complete(cmd, "dtype", types...)
}

// complete makes a shell complete the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
}

// check returns the first mistake in the flags, and completes them.
func (o *exportOptions) check(cmd *cobra.Command) error {
	if o.checkpoint == "" {
		return cli.Usagef(cmd, "no model given, want --checkpoint DIR")
	}
	if o.output == "" {
		return cli.Usagef(cmd, "no place for the result given, want -o PATH")
	}
	known, ok := exportTypes[o.format]
	if !ok {
		return cli.Usagef(cmd, "--format: given %q, want hf or gguf", o.format)
	}
	if o.dtype == "" {
		o.dtype = map[string]string{formatHF: keep, formatGGUF: "f16"}[o.format]
	}
	if !slices.Contains(known, o.dtype) {
		return cli.Usagef(cmd, "--dtype: given %q, want %s with --format %s", o.dtype, strings.Join(known, ", "), o.format)
	}
	if o.format == formatGGUF && filepath.Ext(o.output) != ".gguf" {
		return cli.Usagef(cmd, "--output: given %q, want a name that ends with .gguf", o.output)
	}
	if o.format == formatGGUF && cmd.Flags().Changed("max-shard-size") {
		return cli.Usagef(cmd, "--max-shard-size: a gguf file is not split; it is for --format hf")
	}
	if size, err := cli.ParseSize(o.maxShard); err != nil || size < 1 {
		return cli.Usagef(cmd, "--max-shard-size: given %q, want a size such as 5GB or 500MiB", o.maxShard)
	}
	return nil
}

// convert writes the model in a folder, which it closes.
func (o *exportOptions) convert(prog cli.Program, open func() (*weights.Folder, error)) (err error) {
	folder, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	m, err := export.FromFolder(folder)
	if err != nil {
		return err
	}
	if o.format == formatHF {
		size, _ := cli.ParseSize(o.maxShard)
		dtype := map[string]tensor.DType{"f32": tensor.F32, "bf16": tensor.BF16, "f16": tensor.F16}[o.dtype]
		if err := export.HF(o.output, m, export.HFSettings{DType: dtype, MaxShard: int64(size)}); err != nil {
			return err
		}
		return o.report(prog, m, fmt.Sprint(m.JSON["model_type"]))
	}
	kind := map[string]export.Type{"f32": export.F32, "f16": export.F16, "bf16": export.BF16, "q8_0": export.Q8_0}[o.dtype]
	report, err := export.GGUF(o.output, m, export.GGUFSettings{Type: kind, Name: strings.TrimSuffix(filepath.Base(o.output), ".gguf")})
	if err != nil {
		return err
	}
	if n := len(report.Wider); n > 0 {
		_, err := fmt.Fprintf(prog.Err, "%s f16, because their rows are no multiple of the 32 elements of a block of q8_0: %s\n",
			plaintext.Quantity(n, "matrix is", "matrices are"), strings.Join(report.Wider, ", "))
		if err != nil {
			return err
		}
	}
	return o.report(prog, m, report.Architecture)
}

// report prints what was written.
func (o *exportOptions) report(prog cli.Program, m *export.Model, kind string) error {
	types := []string{o.dtype}
	if o.dtype == keep {
		types = nil
		for _, t := range m.Tensors {
			if name := t.DType.String(); !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	_, err := fmt.Fprintf(prog.Out, "%s: %s, %s, %s\n", o.output, kind, plaintext.Quantity(m.Config.NumParameters(), "parameter", "parameters"), strings.Join(types, " and "))
	return err
}
