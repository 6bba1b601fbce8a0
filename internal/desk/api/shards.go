package api

import (
	"context"

	"docket/internal/history/reader"
)

// Partly says which shards an answer lacks.
type Partly struct {
	ShardsNotAsked []string `json:"shards_not_asked,omitempty" doc:"Shards that could not be asked: their decisions are missing. Without shards it is missing"`
}

// lacking is an answer that can say which shards it lacks.
type lacking interface{ lack(shards []string) }

func (o *searchOutput) lack(shards []string) {
	o.Body.ShardsNotAsked, o.Body.Freshness = shards, reader.Partial
}
func (o *decisionsOutput) lack(shards []string) {
	o.Body.ShardsNotAsked, o.Body.Freshness = shards, reader.Partial
}
func (o *whyOutput) lack(shards []string) {
	o.Body.ShardsNotAsked, o.Body.Freshness = shards, reader.Partial
}
func (o *diffOutput) lack(shards []string) { o.Body.ShardsNotAsked = shards }
func (o *statsOutput) lack(shards []string) {
	o.Body.ShardsNotAsked, o.Body.Freshness = shards, reader.Partial
}
func (o *followOutput) lack(shards []string) { o.Body.ShardsNotAsked = shards }

// whole runs a request, and has its answer say which shards it lacks. An answer that cannot say so is an error.
func whole[O any](ctx context.Context, handle func(context.Context) (*O, error)) (*O, error) {
	ctx, parts := reader.WithParts(ctx)
	out, err := handle(ctx)
	if err != nil || parts.Err() == nil {
		return out, err
	}
	if o, ok := any(out).(lacking); ok {
		o.lack(parts.NotAsked())
		return out, nil
	}
	return nil, ofReader(parts.Err())
}
