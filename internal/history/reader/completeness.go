package reader

import "time"

// Freshness says in one word how complete an answer is.
type Freshness string

// The values of Freshness. The first that fits holds, in this order: PARTIAL, HOLDING, CATCHING_UP, ARCHIVED,
// NOT_FOUND, FRESH.
const (
	// Fresh: all that had reached Kafka by the last look but one has its home. A look is made each 5 s.
	Fresh Freshness = "FRESH"
	// CatchingUp: decisions that may belong to the answer wait in Kafka for longer.
	CatchingUp Freshness = "CATCHING_UP"
	// Holding: a partition with waiting records has made no progress for 30 s, or its group has no members. Its consumer
	// holds, or none reads it.
	Holding Freshness = "HOLDING"
	// Partial: a place was not searched completely, or it is not known what waits.
	Partial Freshness = "PARTIAL"
	// Archived: the answer has decisions that are only in the archive.
	Archived Freshness = "ARCHIVED"
	// NotFound: nothing was found, and nothing waits for longer than for FRESH.
	NotFound Freshness = "NOT_FOUND"
)

// Completeness says how complete an answer is. Each field is null in JSON where it is unknown. It is never a reason
// for an error or for a wait.
type Completeness struct {
	Freshness Freshness `json:"freshness" enum:"FRESH,CATCHING_UP,HOLDING,PARTIAL,ARCHIVED,NOT_FOUND" doc:"How complete the answer is, in one word"`
	// CompleteUntil: a decision that had reached Kafka before then, by the broker's clock, is in the answer or counted
	// below, if it matches. It speaks of Kafka, not of uploads that an OPA still holds.
	CompleteUntil *time.Time `json:"complete_until" doc:"A decision that had reached Kafka before then is in the answer or counted below, if it matches; null: not known"`
	// Behind is in records, over all lanes. The marks of transactions count as well.
	Behind  *int64 `json:"behind" doc:"Records that wait in Kafka, over all lanes; null: not known"`
	ETA     *int64 `json:"eta_ms" doc:"Until these are stored, in milliseconds, as fast as during the last minute; null: not known"`
	ETALow  *int64 `json:"eta_low_ms" doc:"That at the fastest of the last minute"`
	ETAHigh *int64 `json:"eta_high_ms" doc:"That at the slowest of the last minute; null: nothing was stored in it for a while"`
	// Parked and DeadLettered count also those of which the time cannot be read. A count may be too high by records
	// that became rows meanwhile.
	Parked       *int64 `json:"parked" doc:"Parked decisions that may be of the asked range; null: not known"`
	DeadLettered *int64 `json:"dead_lettered" doc:"Open dead letters that may be of the asked range; null: not known"`
	Spooled      *int64 `json:"spooled" doc:"Decisions of the asked range in spools: 0, or null if a spool may have records or it is not known"`
}
