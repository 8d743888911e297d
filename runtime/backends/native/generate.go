package native

import (
	"context"
	"errors"

	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
)

// sampleLength is the number of tokens of generated text at the end of a run.
const sampleLength = 200

// sampleTemperature divides the scores; below 1 favours likely tokens.
const sampleTemperature = 0.8

// generate lets the model continue a prompt and keeps both. It returns errGivenUp if ctx ends
// first. Ranks that have parts of a model generate the same text together, which nothing gives up.
func (t *trainer) generate(ctx context.Context) (err error) {
	if t.stage() {
		t.tc.Log.Info("no text is generated: a stage of a pipeline has a part of the layers; primus generate loads the checkpoint")
		return nil
	}
	prompt, err := t.choosePrompt()
	if err != nil {
		return err
	}
	if t.divided() {
		shared, err := t.world.Share("share the prompt", []byte(prompt))
		if err != nil {
			return err
		}
		ctx, prompt = context.WithoutCancel(ctx), string(shared)
	}
	tok := t.args.tokenizer
	e, err := inference.New(t.model, tok, t.tc.Manager, inference.Settings{Capacity: t.args.SeqLength})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	request := inference.Request{
		Prompt: tok.Encode(nil, []byte(prompt)), MaxTokens: sampleLength, Slide: true,
		Sampling: inference.Sampling{Temperature: sampleTemperature, Seed: uint64(t.args.Seed) + uint64(t.state.Step)<<32},
	}
	if t.examples != nil {
		if end := tok.Decode(nil, t.examples.End()); len(end) > 0 {
			request.Stop = []string{string(end)}
		}
	}
	text, err := e.Generate(ctx, request, nil)
	if ctx.Err() != nil {
		return errGivenUp
	}
	if err != nil {
		return err
	}
	t.result.Prompt, t.result.Sample = prompt, prompt+text.Text
	return nil
}

// choosePrompt returns sample_prompt or, if that is empty, the first words of a line of the text
// held out for evaluation, or of the training text if none is held out.
func (t *trainer) choosePrompt() (string, error) {
	if t.args.SamplePrompt != "" {
		return t.args.SamplePrompt, nil
	}
	if t.examples != nil {
		return string(t.args.tokenizer.Decode(nil, t.examples.Prompt())), nil
	}
	row := model.NewBatch(1, t.args.SeqLength)
	var err error
	if t.valid != nil {
		t.valid.windows.Reset()
		err = t.valid.windows.Batch(&row)
	} else {
		at := t.sampler.Position()
		t.sampler.Seek(0)
		err = t.sampler.Batch(&row)
		t.sampler.Seek(at)
	}
	return inference.FirstWords(string(t.args.tokenizer.Decode(nil, row.Tokens))), err
}
