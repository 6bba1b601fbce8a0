package reader

import "time"

// Freshness says in one word how complete an answer is.
type Freshness string

// The values of Freshness.
const (
	Fresh      Freshness = "FRESH"       // nothing of the asked range waits in Kafka
	CatchingUp Freshness = "CATCHING_UP" // decisions of the asked range may still wait in Kafka
	Holding    Freshness = "HOLDING"     // a partition that may have such decisions holds
	Partial    Freshness = "PARTIAL"     // a place could not be searched, or it is not known what waits
	Archived   Freshness = "ARCHIVED"    // the answer has decisions that are only in the archive
	NotFound   Freshness = "NOT_FOUND"   // nothing was found, and nothing waits
)

// Completeness says how complete an answer is. Each field is null in JSON where it is unknown. It is never a reason
// for an error or for a wait.
type Completeness struct {
	Freshness Freshness `json:"freshness" enum:"FRESH,CATCHING_UP,HOLDING,PARTIAL,ARCHIVED,NOT_FOUND"`
	// CompleteUntil: a decision that reached Kafka before then, by the broker's clock, is in the answer or counted
	// below, if it matches.
	CompleteUntil *time.Time `json:"complete_until"`
	Behind        *int64     `json:"behind"`     // records that wait in Kafka, over all lanes
	ETA           *int64     `json:"eta_ms"`     // until these are stored, in milliseconds
	ETALow        *int64     `json:"eta_low_ms"` // the band of it
	ETAHigh       *int64     `json:"eta_high_ms"`
	Parked        *int64     `json:"parked"`        // decisions of the asked range that are parked
	DeadLettered  *int64     `json:"dead_lettered"` // decisions of the asked range in dead-letter topics
	Spooled       *int64     `json:"spooled"`       // decisions of the asked range in spools
}
