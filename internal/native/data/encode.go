package data

import (
	"context"
	"io"
	"runtime"
	"sync"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// Encoding says how documents become tokens.
type Encoding struct {
	Tokenizer tokenizer.Tokenizer

	// EOD is the token that follows each document, −1 for none.
	EOD int32

	// Separate puts corpus.Separator between documents.
	Separate bool

	// Workers is the number of documents that are encoded at the same time; 0 means as many as there
	// are processors. The tokens do not depend on it.
	Workers int
}

// The sizes of what is encoded at once.
const (
	chunkSize  = 128 << 10 // of text, at least, and at most a piece more
	maxWorkers = 16
)

// chunk is text that a worker encodes.
type chunk struct {
	text   []byte
	pieces []piece
	first  bool // it begins with the first document of all
	ids    []int32
	ends   []int // of documents, in ids
	done   chan struct{}
}

// piece is a corpus.Piece in the text of a chunk.
type piece struct {
	size         int
	begins, ends bool
}

// Encode passes the tokens of the documents of a corpus to yield: ids, and the ends of the
// documents among them. A document may come in several calls. The slices are valid until yield
// returns. It reads and encodes in other goroutines, which have ended when it returns.
func (e Encoding) Encode(ctx context.Context, c *corpus.Corpus, yield func(ids []int32, ends []int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	workers := e.Workers
	if workers < 1 {
		workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	chunks := workers + 2
	free, queue, work := make(chan *chunk, chunks), make(chan *chunk, chunks), make(chan *chunk, chunks)
	for range chunks {
		free <- &chunk{done: make(chan struct{}, 1)}
	}
	for range workers {
		running.Go(func() {
			for c := range work {
				e.encode(c)
				c.done <- struct{}{}
			}
		})
	}
	var readErr error
	running.Go(func() {
		readErr = e.read(ctx, c, free, func(c *chunk) { queue <- c; work <- c })
		close(work)
		close(queue)
	})
	for c := range queue {
		<-c.done
		if err := yield(c.ids, c.ends); err != nil {
			return err
		}
		free <- c
	}
	return readErr
}

// read fills chunks with the documents of a corpus.
func (e Encoding) read(ctx context.Context, c *corpus.Corpus, free <-chan *chunk, submit func(*chunk)) error {
	var now *chunk
	first := true
	err := c.Read(ctx, func(p corpus.Piece) error {
		if now == nil {
			select {
			case now = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			now.text, now.pieces, now.first = now.text[:0], now.pieces[:0], first
			if now.text == nil {
				now.text, now.ids = make([]byte, 0, chunkSize+corpus.PieceSize), make([]int32, 0, chunkSize+corpus.PieceSize)
			}
			first = false
		}
		now.text = append(now.text, p.Text...)
		now.pieces = append(now.pieces, piece{len(p.Text), p.Begins, p.Ends})
		if len(now.text) >= chunkSize {
			submit(now)
			now = nil
		}
		return nil
	})
	if now != nil && err == nil {
		submit(now)
	}
	return err
}

// encode computes the tokens of a chunk.
func (e Encoding) encode(c *chunk) {
	c.ids, c.ends = c.ids[:0], c.ends[:0]
	at := 0
	for i, p := range c.pieces {
		if e.Separate && p.begins && !(c.first && i == 0) {
			c.ids = e.Tokenizer.Encode(c.ids, []byte(corpus.Separator))
		}
		c.ids = e.encodePiece(c.ids, c.text[at:at+p.size], p.begins)
		at += p.size
		if p.ends {
			if e.EOD >= 0 {
				c.ids = append(c.ids, e.EOD)
			}
			c.ends = append(c.ends, len(c.ids))
		}
	}
}

// encodePiece appends the tokens of a piece of a document. Tokenizers of files put something before
// a text, which does not belong into the middle of a document.
func (e Encoding) encodePiece(ids []int32, text []byte, begins bool) []int32 {
	if file, ok := e.Tokenizer.(*tokenizer.File); ok && !begins {
		return file.EncodeRest(ids, text)
	}
	return e.Tokenizer.Encode(ids, text)
}

// writeTokens writes the tokens of a corpus as a stream of ids of width bytes.
func (e Encoding) writeTokens(ctx context.Context, c *corpus.Corpus, w io.Writer, width int, progress func(read, total int64)) error {
	var out []byte
	total := c.FileBytes()
	return e.Encode(ctx, c, func(ids []int32, _ []int) (err error) {
		if err := checkIDs(ids, e.Tokenizer.VocabSize()); err != nil {
			return err
		}
		out = indexed.Append(out[:0], ids, width)
		if progress != nil {
			progress(c.BytesRead(), total)
		}
		_, err = w.Write(out)
		return err
	})
}
