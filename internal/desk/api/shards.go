package api

import (
	"context"

	"docket/internal/history/reader"
)

// Partly says which shards and places an answer lacks.
type Partly struct {
	NotRead        []string `json:"not_read,omitempty" doc:"Parts of the table that were not read, and why: their decisions are missing. Missing: all were"`
	ShardsNotAsked []string `json:"shards_not_asked,omitempty" doc:"Shards that could not be asked: their decisions are missing. Without shards it is missing"`
}

func partlyOf(p *reader.Parts) Partly {
	return Partly{NotRead: reader.GapTexts(p.NotRead()), ShardsNotAsked: p.NotAsked()}
}

// lacking is an answer that can say which shards and places it lacks.
type lacking interface{ lack(p *reader.Parts) }

func (o *searchOutput) lack(p *reader.Parts) {
	o.Body.Partly = partlyOf(p)
	o.Body.Lack(p)
	o.Body.ReadOn.Lack(p)
}
func (o *decisionsOutput) lack(p *reader.Parts) { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }
func (o *whyOutput) lack(p *reader.Parts)       { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }
func (o *statsOutput) lack(p *reader.Parts)     { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }
func (o *diffOutput) lack(p *reader.Parts)      { o.Body.Partly = partlyOf(p) }
func (o *statesOutput) lack(p *reader.Parts)    { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }
func (o *flipsOutput) lack(p *reader.Parts)     { o.Body.Partly = partlyOf(p); o.Body.Lack(p) }
func (o *followOutput) lack(p *reader.Parts)    { o.Body.Partly = partlyOf(p) }

// whole runs a request, and has its answer say what it lacks. An answer that cannot say so is an error.
func whole[O any](ctx context.Context, handle func(context.Context) (*O, error)) (*O, error) {
	ctx, parts := reader.WithParts(ctx)
	out, err := handle(ctx)
	if err != nil || parts.Err() == nil {
		return out, err
	}
	if o, ok := any(out).(lacking); ok {
		o.lack(parts)
		return out, nil
	}
	return nil, ofReader(parts.Err())
}
