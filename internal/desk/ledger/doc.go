// Package ledger defines dead letters in the ledger: their states and legal moves, the fingerprint that groups them,
// the filter that finds them, and the ledger's operations as small interfaces.
//
// It imports no SQL and no Kafka client, and shows nothing.
//
//	             retry                    stored
//	PENDING ───────────────▶ PROCESSING ──────────▶ RESOLVED ──▶ gone after a while; its audit stays
//	   ▲  ▲                   │   │  ▲                  ▲
//	   │  └── dead again ─────┘   │  └── retry ──┐      │ resolved by a person, with a note
//	   └───── lease ended ────────┤              │      │
//	                              └──────────▶ FAILED ──┘
//	                       dead again too often, or not to be published
//
// A retry that was given up can still turn out to be stored. Then PENDING and FAILED also go to RESOLVED.
package ledger
