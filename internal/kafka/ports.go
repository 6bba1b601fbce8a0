package kafka

import "docket/internal/consumer/pipeline"

// What the pipeline asks for is here.
var (
	_ pipeline.Assignment = (*Assignment)(nil)
	_ pipeline.Publisher  = (*Publisher)(nil)
)
