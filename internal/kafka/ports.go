package kafka

import "docket/internal/pipeline"

// What the pipeline asks for is here.
var (
	_ pipeline.Assignment = (*Assignment)(nil)
	_ pipeline.Publisher  = (*Publisher)(nil)
)
