package kafka

import "docket/internal/consumer/pipeline"

// These types implement interfaces of the pipeline.
var (
	_ pipeline.Assignment = (*Assignment)(nil)
	_ pipeline.Publisher  = (*Publisher)(nil)
)
