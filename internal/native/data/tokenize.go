package data

import (
	"context"
	"fmt"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// TokenizeSettings say what Tokenize reads and writes.
type TokenizeSettings struct {
	Inputs    []corpus.Settings
	Tokenizer tokenizer.Tokenizer
	Prefix    string // of the indexed dataset
	Replace   bool   // what is there under the prefix
	EndDocs   bool   // EndOfDocument follows each document
	Workers   int    // documents encoded at the same time; 0 means as many as there are processors

	// Progress, if it is not nil, is called after every few documents.
	Progress func(Tokenized)
}

// Tokenized is how far a Tokenize has come.
type Tokenized struct {
	Documents int
	Tokens    int64
	Bytes     int64 // read from files
	Total     int64 // bytes of the files
}

// Tokenize writes the tokens of documents as an indexed dataset, one sequence per document. The
// result does not depend on the number of workers. If it fails or ctx ends, what is there under the
// prefix is unchanged.
func Tokenize(ctx context.Context, s TokenizeSettings) (Tokenized, error) {
	var done Tokenized
	e := Encoding{Tokenizer: s.Tokenizer, EOD: -1, Workers: s.Workers}
	if s.EndDocs {
		if e.EOD = EndOfDocument(s.Tokenizer); e.EOD < 0 {
			return done, fmt.Errorf("data: the tokenizer %s has no token that ends documents", s.Tokenizer.Name())
		}
	}
	var inputs []*corpus.Corpus
	for _, input := range s.Inputs {
		c, err := corpus.Find(ctx, input)
		if err != nil {
			return done, err
		}
		inputs = append(inputs, c)
		done.Total += c.FileBytes()
	}
	vocab := s.Tokenizer.VocabSize()
	err := indexed.Write(s.Prefix, indexed.DTypeOf(vocab), s.Replace, func(w *indexed.Writer) error {
		for _, c := range inputs {
			before := done.Bytes
			err := e.Encode(ctx, c, func(ids []int32, ends []int) error {
				if err := checkIDs(ids, vocab); err != nil {
					return err
				}
				from := 0
				for _, end := range ends {
					if err := w.Add(ids[from:end]); err != nil {
						return err
					}
					w.EndDocument()
					from = end
				}
				done.Documents, done.Tokens, done.Bytes = w.Documents(), done.Tokens+int64(len(ids)), before+c.BytesRead()
				if s.Progress != nil {
					s.Progress(done)
				}
				return w.Add(ids[from:])
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}
