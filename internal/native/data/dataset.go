package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/tokenizer"
)

// SourceConfig are the parameters that say what a run trains on, with Megatron's names where it has
// one.
type SourceConfig struct {
	TrainDataPath string `param:"train_data_path"` // "" means the Go standard library's sources
	ValidDataPath string `param:"valid_data_path"` // "" means a part of train_data_path
	TestDataPath  string `param:"test_data_path"`  // "" means the part that split says, if any

	TrainDataMax    int64         `param:"train_data_max_bytes"`
	TrainDataFormat corpus.Format `param:"train_data_format"` // "" means auto
	TextKey         string        `param:"text_key"`          // "" means text

	OnBadRecord corpus.OnBad `param:"on_bad_record"` // "" means error
	VerifyData  bool         `param:"verify_data"`   // read the files though their tokens are in a cache

	ValidFraction float64 `param:"valid_fraction"`
	Split         string  `param:"split"` // "" means valid_fraction
}

// Validate returns every fault of the parameters.
func (c SourceConfig) Validate() error {
	var faults []error
	if !(c.ValidFraction >= 0 && c.ValidFraction < 1) {
		faults = append(faults, fmt.Errorf("valid_fraction: given %v, want 0 <= valid_fraction < 1", c.ValidFraction))
	}
	if c.TrainDataMax < 0 {
		faults = append(faults, fmt.Errorf("train_data_max_bytes: given %d, want a number >= 0", c.TrainDataMax))
	}
	if c.TrainDataFormat != "" && !slices.Contains(c.TrainDataFormat.Values(), string(c.TrainDataFormat)) {
		faults = append(faults, fmt.Errorf("train_data_format: given %q, want %s", c.TrainDataFormat, strings.Join(c.TrainDataFormat.Values(), ", ")))
	}
	if c.OnBadRecord != "" && !slices.Contains(c.OnBadRecord.Values(), string(c.OnBadRecord)) {
		faults = append(faults, fmt.Errorf("on_bad_record: given %q, want %s", c.OnBadRecord, strings.Join(c.OnBadRecord.Values(), " or ")))
	}
	if _, _, err := c.fractions(); err != nil {
		faults = append(faults, err)
	}
	for _, p := range c.paths() {
		if _, err := ParseBlend(p.spec); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", p.key, err))
		}
	}
	return errors.Join(faults...)
}

type pathParameter struct{ key, spec string }

func (c SourceConfig) paths() []pathParameter {
	return []pathParameter{{"train_data_path", c.TrainDataPath}, {"valid_data_path", c.ValidDataPath}, {"test_data_path", c.TestDataPath}}
}

// fractions returns the parts of train_data_path that are held out for validation and for the test.
func (c SourceConfig) fractions() (valid, test float64, err error) {
	if c.Split == "" {
		return c.ValidFraction, 0, nil
	}
	parts, sum := [3]float64{}, 0.0
	fields := strings.Split(c.Split, ",")
	fault := fmt.Errorf("split: given %q, want up to three numbers for training, validation and the test, as in 969,30,1, the first above 0", c.Split)
	if len(fields) > len(parts) {
		return 0, 0, fault
	}
	for i, field := range fields {
		if parts[i], err = strconv.ParseFloat(strings.TrimSpace(field), 64); err != nil || !(parts[i] >= 0 && parts[i] <= math.MaxFloat32) {
			return 0, 0, fault
		}
		sum += parts[i]
	}
	if !(parts[0] > 0) {
		return 0, 0, fault
	}
	return parts[1] / sum, parts[2] / sum, nil
}

// PlanSettings are what a Plan needs besides SourceConfig.
type PlanSettings struct {
	SeqLength int
	CacheDir  string
	Tokenizer tokenizer.Tokenizer     // nil stands for tokenizer.Byte
	Progress  func(read, total int64) // as in Settings
	Evaluate  bool                    // something is held out; otherwise all windows of train_data_path are for training
}

// Plan is the files of a run, before any of them is read.
type Plan struct {
	settings PlanSettings
	split    SplitSettings
	sets     [3][]plannedSource // for training, validation and the test
}

type plannedSource struct {
	*Source
	weight float64
}

// The sets of a plan.
const (
	trainSet = iota
	validSet
	testSet
)

// NewPlan lists the files of a run.
func NewPlan(ctx context.Context, c SourceConfig, s PlanSettings) (*Plan, error) {
	valid, test, err := c.fractions()
	if err != nil {
		return nil, err
	}
	p := &Plan{settings: s, split: SplitSettings{SeqLength: s.SeqLength}}
	if s.Evaluate {
		if c.ValidDataPath == "" {
			p.split.ValidFraction = valid
		}
		if c.TestDataPath == "" {
			p.split.TestFraction = test
		}
	}
	for i, param := range c.paths() {
		if i != trainSet && (param.spec == "" || !s.Evaluate) {
			continue
		}
		components, err := ParseBlend(param.spec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", param.key, err)
		}
		for _, component := range components {
			source, err := Find(ctx, Settings{
				Settings: corpus.Settings{Key: param.key, Path: component.Path, MaxBytes: c.TrainDataMax, Format: c.TrainDataFormat, TextKey: c.TextKey, OnBad: c.OnBadRecord},
				CacheDir: s.CacheDir, Verify: c.VerifyData, Tokenizer: s.Tokenizer, Progress: s.Progress,
			})
			if err != nil {
				return nil, err
			}
			p.sets[i] = append(p.sets[i], plannedSource{source, component.Weight})
		}
	}
	return p, nil
}

// Reports says what each source holds.
func (p *Plan) Reports() []Report {
	var all []Report
	for _, set := range p.sets {
		for _, s := range set {
			all = append(all, s.Report())
		}
	}
	return all
}

// Paths returns the paths of the files of all sources.
func (p *Plan) Paths() []string {
	var all []string
	for _, set := range p.sets {
		for _, s := range set {
			all = append(all, s.Paths()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Check returns a *TooShortError if a source is certainly too short, without reading it.
func (p *Plan) Check() error {
	for i, set := range p.sets {
		for _, s := range set {
			if most, known := s.MostTokens(); known {
				if err := p.splitOf(i).CheckLength(int(most)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// splitOf returns how the streams of a set are cut.
func (p *Plan) splitOf(set int) SplitSettings {
	if set == trainSet {
		return p.split
	}
	return SplitSettings{SeqLength: p.split.SeqLength}
}

// Dataset is what a run trains on, evaluates and tests on.
type Dataset struct {
	Train *Blend
	Valid *Blend // nil without validation
	Test  *Blend // nil without a test

	tokens []*Tokens
}

// Load loads the tokens of all sources and calls report for each.
func (p *Plan) Load(ctx context.Context, report func(Report)) (*Dataset, error) {
	d := &Dataset{}
	var blends [3][]*Blend
	var weights [3][]float64
	add := func(set int, b *Blend, weight float64) {
		if b.Len() > 0 {
			blends[set], weights[set] = append(blends[set], b), append(weights[set], weight)
		}
	}
	for i, sources := range p.sets {
		for _, s := range sources {
			set, err := d.load(ctx, s.Source, p.splitOf(i), report)
			if err != nil {
				return nil, errors.Join(err, d.Close())
			}
			add(i, set.Train(), s.weight)
			add(validSet, set.Valid(), s.weight)
			add(testSet, set.Test(), s.weight)
		}
	}
	for i, to := range []**Blend{&d.Train, &d.Valid, &d.Test} {
		if blends[i] == nil {
			continue
		}
		b, err := Mix(blends[i], weights[i])
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		*to = b
	}
	return d, nil
}

func (d *Dataset) load(ctx context.Context, s *Source, split SplitSettings, report func(Report)) (*Set, error) {
	tokens, r, err := s.Load(ctx)
	report(r)
	if err != nil {
		return nil, err
	}
	d.tokens = append(d.tokens, tokens)
	set, err := NewSet(tokens, split)
	if err != nil && len(d.tokens) > 1 {
		err = fmt.Errorf("%w (%s: %s)", err, s.key(), s.report.Source)
	}
	return set, err
}

// Fingerprint identifies the windows of training, validation and the test.
func (d *Dataset) Fingerprint() string { return d.describe((*Blend).Fingerprint) }

// Corpus identifies the content of the streams; every Fingerprint of the same sources begins with
// it if there is one source.
func (d *Dataset) Corpus() string { return d.describe((*Blend).Corpus) }

func (d *Dataset) describe(blend func(*Blend) string) string {
	text := blend(d.Train)
	for _, other := range []*Blend{d.Valid, d.Test} {
		if other != nil && blend(other) != blend(d.Train) {
			text += " | " + blend(other)
		}
	}
	return text
}

// Close releases the tokens.
func (d *Dataset) Close() error {
	var faults []error
	for _, t := range d.tokens {
		faults = append(faults, t.Close())
	}
	d.tokens = nil
	return errors.Join(faults...)
}
