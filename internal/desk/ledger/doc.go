// Package ledger holds what a dead letter is once somebody has to answer for it: its states and the legal moves between
// them, the fingerprint that groups it, the filter that finds it, and the verbs of the desk as small interfaces.
//
// It stays free of SQL, of Kafka's clients and of how anything is shown.
//
//	             retry                    stored
//	PENDING ───────────────▶ PROCESSING ──────────▶ RESOLVED ──▶ gone after a while; its audit stays
//	   ▲  ▲                   │   │  ▲                  ▲
//	   │  └── dead again ─────┘   │  └── retry ──┐      │ resolved by a person, with a note
//	   └───── lease ended ────────┤              │      │
//	                              └──────────▶ FAILED ──┘
//	                       dead again too often, or not to be published
//
// A retry that was given up as lost can still turn out to be stored: PENDING and FAILED go to RESOLVED then, too.
package ledger
