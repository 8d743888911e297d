package models

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/spf13/cobra"
)

// NewImport returns the command `primus import`.
func NewImport(prog cli.Program) *cobra.Command {
	o := exportOptions{format: formatHF}
	var like string
	cmd := &cobra.Command{
		Use:   "import --checkpoint DIR --like DIR -o DIR",
		Short: "Read a checkpoint of TorchTitan or Megatron",
		Long: `Read a checkpoint of TorchTitan or Megatron and write its weights as a folder that primus
and Hugging Face's transformers load. Python and PyTorch are not needed, and nothing in
the checkpoint is carried out: one that names other classes than checkpoints need is
refused.

A checkpoint is a directory step-N of TorchTitan or iter_N of Megatron. Of a directory
with several, the newest is read. It does not say the architecture, which is that of
--like: a folder of Hugging Face with config.json and the files of the tokenizer. Every
weight of the architecture must be there, in its shape. The states of the optimizer are
left.

Existing files are not replaced.`,
		Example: `  primus import --checkpoint outputs/checkpoint/step-1000 --like assets/hf/Llama-3.1-8B -o llama
  primus generate --checkpoint llama --prompt Once`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if like == "" && o.checkpoint != "" {
				return cli.Usagef(cmd, "no architecture given, want --like DIR, a folder with the config.json of the model")
			}
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.convert(prog, func() (*weights.Folder, error) { return weights.Import(cmd.Context(), o.checkpoint, like) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.checkpoint, "checkpoint", "", "`DIR` with the weights: step-N of TorchTitan, iter_N of Megatron, or the directory with them")
	flags.StringVar(&like, "like", "", "`DIR` of Hugging Face whose architecture and tokenizer the model has")
	o.addTargetFlags(cmd, "`TYPE` of the weights: keep, f32, bf16 or f16", "`DIR` that is written", exportTypes[formatHF]...)
	return cmd
}
